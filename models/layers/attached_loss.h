// A loss beside the main one, whose gradient joins the main one's.
#pragma once

#include <ATen/core/Tensor.h>

namespace models {

/// `value` as it is. Whatever its gradient is, in backward the elements of `loss` each get the
/// gradient `share`, as parts of the whole loss (MoEAuxLossAutoScaler and MTPLossAutoScaler of
/// Megatron-LM).
at::Tensor attach_loss(const at::Tensor& value, const at::Tensor& loss, double share);

}  // namespace models
