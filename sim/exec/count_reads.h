// Reads by which a program sizes its work: had they been answered with zeros, the experts of a
// mixture would get no tokens and the run would still succeed.
#pragma once

#include <ATen/record_function.h>

#include <string_view>

namespace sim {

/// Whether the operator may bring numbers from the device to the host.
bool is_copy(std::string_view operator_name);
/// Whether a call of one that may brings several whole numbers.
bool reads_counts(const at::RecordFunction& copy);

/// Whether the operator makes a tensor whose size is a matter of values on the device.
bool is_sized_by_values(std::string_view operator_name);

}  // namespace sim
