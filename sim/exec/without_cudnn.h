// The virtual GPU has no cuDNN, because the sizes of its workspaces are not public. PyTorch's own
// kernels do the same work, and the user is told so.
#pragma once

#include <ATen/record_function.h>

#include <string_view>

namespace sim {

/// Makes torch use its own kernels where it would use cuDNN's.
void switch_cudnn_off();

/// Whether torch passes the operator to cuDNN when it can.
bool has_cudnn_kernels(std::string_view operator_name);
/// At the first call of such an operator on the device, prints what runs in its place.
void note_missing_cudnn(const at::RecordFunction& function);

}  // namespace sim
