// The pages of commands that compare plans: sweep, search and diff.
#pragma once

#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/what_if/search_result.h"
#include "estimator/what_if/sweep.h"
#include "sim/cli/page/page.h"
#include "sim/cli/report/diff_report.h"

namespace sim {

/// `plans` are those that were swept or searched.
Page sweep_page(const std::vector<estimator::Plan>& plans, const estimator::Sweep& sweep);
Page search_page(const std::vector<estimator::Plan>& plans, const estimator::Search& search);
Page diff_page(const EstimateDiff& diff);

}  // namespace sim
