// The pages of commands that compare plans: sweep, search and diff.
#pragma once

#include "estimator/plan/plan.h"
#include "estimator/what_if/search.h"
#include "estimator/what_if/sweep.h"
#include "sim/cli/page/page.h"
#include "sim/cli/report/diff_report.h"

namespace sim {

/// `plan` is one of those that were swept or searched.
Page sweep_page(const estimator::Plan& plan, const estimator::Sweep& sweep);
Page search_page(const estimator::Plan& plan, const estimator::Search& search);
Page diff_page(const EstimateDiff& diff);

}  // namespace sim
