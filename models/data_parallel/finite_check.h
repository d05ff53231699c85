// Whether a number is one, as Megatron-LM asks of every loss and of every bucket of gradients: the
// host waits for the answer (validate_result in megatron/core/rerun_state_machine.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace models {

/// Throws std::runtime_error, with `what`, where the scalar is NaN or infinite.
void check_finite(const at::Tensor& scalar, const std::string& what);

}  // namespace models
