// What bounds a step, as text.
#pragma once

#include <string>

#include "estimator/cluster/roofline.h"

namespace sim {

/// The bounds of the step, and tables by operator, module, phase and hotspot.
std::string roofline_text(const estimator::Roofline& roofline);

}  // namespace sim
