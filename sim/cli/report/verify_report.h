// The output of `onerank verify`.
#pragma once

#include <string>

#include "sim/verify/verification.h"

namespace sim {

/// A verdict and one table, then the differences, if there are any.
std::string verification_text(const Verification& verification);

}  // namespace sim
