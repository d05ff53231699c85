// Finds reads by which a program decides how much work it does. If such a read were answered with
// zeros, for example, experts would get no tokens, and the run would succeed all the same.
#pragma once

#include <ATen/core/operator_name.h>
#include <ATen/record_function.h>

#include <string>
#include <string_view>

namespace sim {

/// Whether the operator may copy numbers from the device to the host.
bool is_copy(std::string_view operator_name);
/// Whether a call of such an operator copies several whole numbers.
bool reads_counts(const at::RecordFunction& copy);

/// Whether it is no operator of PyTorch's: its host code reads whole numbers to size its results.
bool is_of_extension(const c10::OperatorName& op);
/// Whether the operator reads the one number of a tensor.
bool reads_number(std::string_view operator_name);
/// Whether a call of such an operator reads a whole number.
bool reads_count(const at::RecordFunction& read);

/// Whether the operator's own host code reads back what one of its kernels has computed: the size
/// of its result, or the result itself.
bool reads_back(const c10::OperatorName& op);

/// Whether the operator makes a tensor whose size depends on values on the device.
bool is_sized_by_values(std::string_view operator_name);

/// What a call of such an operator counts, as text: "a Bool tensor [64, 8]". Call it when the
/// operator starts.
std::string counted_tensor_text(const at::RecordFunction& function);

}  // namespace sim
