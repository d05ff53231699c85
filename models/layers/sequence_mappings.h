// The small autograd functions between the tensor ranks (Korthikanti et al. 2022): what is a sum in
// forward is a copy in backward, what is cut along the sequence is gathered again.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/shard/communicator.h"

namespace models {

using Group = std::shared_ptr<Communicator>;

/// How torch.distributed is given the ranks' parts: as one tensor, or as a list of tensors, for
/// which it makes one tensor more, and copies.
enum class Parts { kOneTensor, kList };

/// Forward: sum over the ranks. Backward: the gradient as it is.
at::Tensor reduce_from_ranks(const at::Tensor& input, const Group& group);

/// Forward: the input as it is, which all hold. Backward: the sum of their gradients.
at::Tensor copy_to_ranks(const at::Tensor& input, const Group& group);

/// Forward: sum over the ranks, each keeps its part of dim 0. Backward: gather.
at::Tensor reduce_scatter_to_sequence(const at::Tensor& input,
                                      const Group& group,
                                      Parts parts = Parts::kOneTensor);

/// Forward: dim 0 of all ranks one after the other. Backward: this rank's part of the sum of their
/// gradients.
at::Tensor gather_from_sequence(const at::Tensor& input,
                                const Group& group,
                                Parts parts = Parts::kOneTensor);

/// Forward: each rank keeps its part of dim 0 (all hold the same input). Backward: gather.
at::Tensor scatter_to_sequence(const at::Tensor& input, const Group& group);

/// Forward: the last dim of all ranks one after the other. Backward: this rank's part of the sum of
/// their gradients.
at::Tensor gather_last_dim(const at::Tensor& input, const Group& group);

/// dim 0 of all ranks one after the other, without autograd.
at::Tensor gather_sequence(const at::Tensor& part,
                           Communicator& group,
                           Parts parts = Parts::kOneTensor);

/// This rank's part (dim 0) of the sum over the ranks, without autograd.
at::Tensor reduce_scatter_sequence(const at::Tensor& whole,
                                   Communicator& group,
                                   Parts parts = Parts::kOneTensor);

}  // namespace models
