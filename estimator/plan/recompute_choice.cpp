#include "estimator/plan/recompute_choice.h"

#include "estimator/plan/frameworks.h"

namespace estimator {

Recomputed recomputed(const Plan& plan, int64_t layer) {
  const TrainingConfig& t = plan.training;
  if (t.recompute == Recompute::kNone) return Recomputed::kNothing;
  if (t.recompute == Recompute::kFull) return Recomputed::kLayer;
  if (!traits_of(t.framework).selective_by_operator) return Recomputed::kCoreAttention;
  if (t.selective_ac_option == kSelectiveByOperator) return Recomputed::kUnlistedOperators;
  const int64_t every = std::stoll(t.selective_ac_option);
  const bool is_one = every == 0 || (layer + 1) % every == 0;
  return is_one ? Recomputed::kLayer : Recomputed::kNothing;
}

}  // namespace estimator
