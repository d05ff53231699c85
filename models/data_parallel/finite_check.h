// Checks for NaN and infinity, as Megatron-LM does for every loss and every gradient bucket; the
// host waits for the result (validate_result in megatron/core/rerun_state_machine.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace models {

/// Throws std::runtime_error with `what` in its message when the scalar is NaN or infinite.
void check_finite(const at::Tensor& scalar, const std::string& what);

}  // namespace models
