// Rows of experts, padded for quantized products (Fp8Padding in
// transformer_engine/pytorch/module/fp8_padding.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "estimator/plan/plan.h"

namespace models {

/// The rows of each expert, as many as the plan's products take.
std::vector<int64_t> padded_rows(const estimator::Plan& plan, std::vector<int64_t> rows_of);

/// One expert's rows, followed by zeros: [rows, ...] -> [count, ...], as SequentialMLP pads them
/// (megatron/core/transformer/moe/experts.py).
at::Tensor with_zeros(const at::Tensor& tensor, int64_t count);

/// [sum of before, ...] -> [sum of after, ...]: each expert's rows, cut, or followed by zeros. The
/// tensor itself if no number changes.
at::Tensor with_rows(const at::Tensor& tensor,
                     const std::vector<int64_t>& before,
                     const std::vector<int64_t>& after);

}  // namespace models
