// The small autograd functions between the tensor ranks (Korthikanti et al. 2022): if the forward
// sums over the ranks, the backward copies; if the forward splits along the sequence, the backward
// gathers.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/shard/communicator.h"

namespace models {

using Group = std::shared_ptr<Communicator>;

/// How the parts of the ranks are passed to torch.distributed: as one tensor, or as a list of
/// tensors. For a list it allocates one more tensor and copies.
enum class Parts { kOneTensor, kList };

/// Forward: sum over the ranks. Backward: the gradient unchanged.
at::Tensor reduce_from_ranks(const at::Tensor& input, const Group& group);

/// Forward: the input unchanged; all ranks hold the same. Backward: the sum of the gradients of all
/// ranks.
at::Tensor copy_to_ranks(const at::Tensor& input, const Group& group);

/// Forward: sum over the ranks, of which each rank keeps its part of dim 0. Backward: gather.
at::Tensor reduce_scatter_to_sequence(const at::Tensor& input,
                                      const Group& group,
                                      Parts parts = Parts::kOneTensor);

/// Forward: concatenates the ranks' inputs along dim 0. Backward: this rank's part of the sum of
/// all ranks' gradients.
at::Tensor gather_from_sequence(const at::Tensor& input,
                                const Group& group,
                                Parts parts = Parts::kOneTensor);

/// The same where all ranks go on with the same. Backward: this rank's part of the gradient, which
/// is the same on all ranks.
at::Tensor gather_columns(const at::Tensor& input, const Group& group);

/// Forward: each rank gives its columns (the last dim) of all rows, and receives all columns of its
/// part of dim 0 (_All2AllHp2Sp in megatron/bridge/peft/utils.py). Backward: the reverse.
at::Tensor columns_to_sequence(const at::Tensor& columns, const Group& group);

/// Forward: each rank goes on with its part of dim 0, a view (all hold the same input). Backward:
/// gather.
at::Tensor scatter_to_sequence(const at::Tensor& input, const Group& group);

/// Forward: concatenates the ranks' inputs along the last dim. Backward: this rank's part of the
/// sum of all ranks' gradients.
at::Tensor gather_last_dim(const at::Tensor& input, const Group& group);

/// Concatenates the ranks' parts along dim 0, without autograd.
at::Tensor gather_sequence(const at::Tensor& part,
                           Communicator& group,
                           Parts parts = Parts::kOneTensor);

/// This rank's part (dim 0) of the sum over the ranks, without autograd.
at::Tensor reduce_scatter_sequence(const at::Tensor& whole,
                                   Communicator& group,
                                   Parts parts = Parts::kOneTensor);

}  // namespace models
