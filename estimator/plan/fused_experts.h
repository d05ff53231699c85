// Experts in fused kernels of TransformerEngine and cuDNN (--use-transformer-engine-op-fuser), and
// memory of a fixed size for their tokens (--moe-expert-rank-capacity-factor).
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/plan/plan.h"

namespace estimator {

/// To which the rows of each expert are padded (get_align_size_for_quantization in
/// megatron/core/transformer/moe/moe_utils.py).
int64_t expert_row_multiple(const TrainingConfig& training);

/// Rows that a rank's experts have memory for (setup_metadata of _HybridEPManager in
/// megatron/core/transformer/moe/token_dispatcher.py); none: as many as come.
std::optional<int64_t> expert_row_budget(const Plan& plan);

/// Rows that come in the mean, which stand for the real number where memory is set aside for them
/// (avg_num_tokens in _fused_forward of experts.py).
int64_t mean_expert_rows(const Plan& plan);

}  // namespace estimator
