#include "models/shard/shard_context.h"

#include <stdexcept>

#include "estimator/plan/frameworks.h"
#include "estimator/plan/quantization.h"

namespace models {

c10::ScalarType scalar_type(estimator::Dtype dtype) {
  switch (dtype) {
    case estimator::Dtype::kBf16:
      return c10::ScalarType::BFloat16;
    case estimator::Dtype::kFp16:
      return c10::ScalarType::Half;
    case estimator::Dtype::kFp32:
      return c10::ScalarType::Float;
  }
  throw std::logic_error("unknown dtype");
}

std::shared_ptr<DelayedGradients> make_delayed_gradients(const estimator::Plan& plan) {
  return plan.parallelism.delay_wgrad_compute ? std::make_shared<DelayedGradients>() : nullptr;
}

/// get_amax_reduction_group in megatron/core/parallel_state.py
std::shared_ptr<DelayedScales> make_delayed_scales(const estimator::Plan& plan,
                                                   const ProcessGroups& groups,
                                                   at::Device device,
                                                   Observer& observer) {
  const bool is_delayed =
      estimator::quantizes(plan.training) && !estimator::quantization_of(plan.training).finds_scale;
  if (!is_delayed) return nullptr;
  const bool of_sequence = plan.training.tp_only_amax_red;
  return std::make_shared<DelayedScales>(
      of_sequence ? groups.tensor_context : groups.stage, device, observer);
}

std::shared_ptr<OutputKeeper> make_output_keeper(const estimator::Plan& plan) {
  const bool by_operator =
      estimator::recomputed(plan, {}) == estimator::Recomputed::kUnlistedOperators;
  return by_operator ? std::make_shared<OutputKeeper>() : nullptr;
}

std::optional<DataPart> ShardContext::data_part() const {
  if (!plan.fully_sharded() && !zero_shards()) return std::nullopt;
  return DataPart{.ranks = plan.shards(),
                  .index = groups.data ? groups.data->index() : 0,
                  .is_flat = zero_shards()};
}

std::optional<DataPart> ShardContext::expert_data_part() const {
  if (!experts_are_unit()) return data_part();
  const std::shared_ptr<Communicator>& group = groups.expert_data;
  return DataPart{.ranks = plan.expert_shards(), .index = group ? group->index() : 0};
}

}  // namespace models
