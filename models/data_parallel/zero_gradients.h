// What DeepSpeed's ZeRO optimizers have in common: how 16-bit tensors become one, when gradients
// are taken, and what is done with them before a step (deepspeed/runtime/zero/stage_1_and_2.py and
// stage3.py of v0.18.3).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/shard/communicator.h"
#include "models/shard/parameters.h"

namespace models {

/// To whom memory and calls of the engine belong.
inline constexpr const char* kZeroModule = "zero";

/// A flat tensor of so many elements: the tensors, one after the other, and zeros. They give their
/// memory back before it is made, for which they go to the host, and the allocator's cache is
/// emptied. Without values to keep they do not go anywhere.
at::Tensor joined_through_host(const std::vector<at::Tensor>& tensors,
                               int64_t elements,
                               bool has_values);

/// Calls `call` whenever autograd has added up the parameter's own gradient.
void when_gradient_is_there(Parameter& parameter, std::function<void()> call);

/// Whether a tensor of gradients has infinities or NaN: stages 1 and 2 look in an fp32 copy
/// (_has_inf_or_nan), stage 3 in the tensor itself (has_overflow).
at::Tensor overflow_of_copy(const at::Tensor& gradients);
at::Tensor overflow_of(const at::Tensor& gradients);

/// Lets the ranks agree on whether there are any.
void agree_on_overflow(const std::vector<at::Tensor>& found,
                       const std::shared_ptr<Communicator>& group);

/// The norm of the gradients of all ranks, of which each is cast to fp64, and -1 if it is no number
/// (get_grad_norm_direct). The sum over the ranks has the type and device of `options`.
at::Tensor norm_of_ranks(const std::vector<at::Tensor>& gradients,
                         const std::shared_ptr<Communicator>& group,
                         const at::TensorOptions& options);

/// The norm of several groups of gradients.
at::Tensor norm_of_groups(const std::vector<at::Tensor>& norms);

/// By what gradients are multiplied so that their norm is at most a limit
/// (unscale_and_clip_grads): 1, since here no norm reaches it.
at::Tensor clipping_factor(const at::Tensor& norm);

/// One flat tensor of them: a view of a single one, a copy of several.
at::Tensor joined(const std::vector<at::Tensor>& tensors);

}  // namespace models
