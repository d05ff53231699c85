// The output of `onerank verify`.
#pragma once

#include <string>

#include "sim/cli/report/table.h"
#include "sim/verify/verification.h"

namespace sim {

/// A verdict and one table, then the differences, if there are any.
std::string verification_text(const Verification& verification);

/// The table with its verdict, for Markdown and CSV.
TitledTable verification_table(const Verification& verification);

}  // namespace sim
