// The experts of a rank in TransformerEngine's fused kernels for MXFP8, with
// --use-transformer-engine-op-fuser (GroupedMLP_CuTeGEMMGLU in
// transformer_engine/pytorch/ops/fused/grouped_mlp.py of 2.17, whose kernels are those of cuDNN's
// front end):
//
//   forward:  cast the rows both ways; product, activation, weights of the rows and casts of the
//             result both ways; product
//   backward: cast the gradient both ways; product, gradients of the activation and of the weights
//             and casts both ways; gradient of the second weights; product; gradient of the first
//
// Each kernel runs all experts. Memory is for as many rows as a rank has a capacity for, and
// kernels work on those that came. Nothing is computed here: this is for the virtual GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "models/experts/grouped_linear_call.h"
#include "models/shard/paged_stash.h"

namespace models {

struct FusedExperts {
  std::shared_ptr<const GroupedLinearCall> first, second;
  std::vector<int64_t> rows_of;       ///< of each expert, padded
  std::shared_ptr<PagedStash> stash;  ///< may be null
};

/// `rows` [capacity, h], `weights` [capacity, 1] of the rows -> [capacity, h].
at::Tensor run_fused_experts(const at::Tensor& rows,
                             const at::Tensor& weights,
                             const FusedExperts& experts);

}  // namespace models
