// TransformerEngine's kernels for the router of a mixture of experts (transformer_engine/pytorch/
// router.py and common/fused_router): one scores and chooses, one scores for the balancing loss,
// and one computes that loss. As in router.h the choice is given. Logits are [tokens, experts].
#pragma once

#include <ATen/core/Tensor.h>

#include "estimator/plan/plan.h"
#include "models/experts/router.h"

namespace models {

struct FusedScore {
  estimator::RouterScore function = estimator::RouterScore::kSoftmax;
  bool scores_first = false;  ///< a softmax is that of all experts, not of the chosen ones
  double scaling_factor = 1;
};

/// fused_topk_with_score_function(). It keeps the map and, in fp32, scores of all experts.
RouterOutput fused_choice(const at::Tensor& logits,
                          const at::Tensor& chosen,
                          const FusedScore& score);

/// fused_compute_score_for_moe_aux_loss(): weights in fp32 that add up to one for each token, of
/// all experts. It keeps them once more.
RouterOutput fused_balance_scores(const at::Tensor& logits,
                                  const at::Tensor& chosen,
                                  estimator::RouterScore function);

/// fused_moe_aux_loss(): the sum of `scores` [rows, columns] x `counts` [columns] x `coefficient`.
/// It keeps the counts alone.
at::Tensor fused_aux_loss(const at::Tensor& scores, const at::Tensor& counts, double coefficient);

}  // namespace models
