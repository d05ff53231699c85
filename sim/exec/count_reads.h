// Reads by which a program sizes its work: had they been answered with zeros, the experts of a
// mixture would get no tokens and the run would still succeed.
#pragma once

#include <ATen/record_function.h>

#include <string>
#include <vector>

namespace sim {

/// Whether the operator brings several whole numbers from the device to the host.
bool reads_counts(const at::RecordFunction& function);

/// Whether one of the running operators (innermost last) makes a tensor whose size is a matter of
/// values on the device.
bool is_sized_by_values(const std::vector<const char*>& running_operators);

}  // namespace sim
