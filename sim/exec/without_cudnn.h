// cuDNN computes nothing on the virtual GPU, since its workspaces are not public: PyTorch's own
// kernels do the same work, and the user is told so.
#pragma once

#include <ATen/record_function.h>

#include <string_view>

namespace sim {

/// Has torch take its own kernels where it would take cuDNN's.
void switch_cudnn_off();

/// Whether torch gives the operator to cuDNN where it can.
bool has_cudnn_kernels(std::string_view operator_name);
/// Prints, at the first call of such an operator on the device, what runs in its place.
void note_missing_cudnn(const at::RecordFunction& function);

}  // namespace sim
