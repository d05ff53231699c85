// Reads by which a program sizes its work: had they been answered with zeros, the experts of a
// mixture would get no tokens and the run would still succeed.
#pragma once

#include <ATen/core/operator_name.h>
#include <ATen/record_function.h>

#include <string>
#include <string_view>

namespace sim {

/// Whether the operator may bring numbers from the device to the host.
bool is_copy(std::string_view operator_name);
/// Whether a call of one that may brings several whole numbers.
bool reads_counts(const at::RecordFunction& copy);

/// Whether the operator's own host code reads from the device what a kernel of it has computed: how
/// large its result is, or the result.
bool reads_back(const c10::OperatorName& op);

/// Whether the operator makes a tensor whose size is a matter of values on the device.
bool is_sized_by_values(std::string_view operator_name);

/// "a Bool tensor [64, 8]": what the call of such an operator counts. For when it starts.
std::string counted_tensor_text(const at::RecordFunction& function);

}  // namespace sim
