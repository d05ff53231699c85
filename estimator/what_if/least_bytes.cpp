#include "estimator/what_if/least_bytes.h"

#include <algorithm>
#include <numeric>

#include "estimator/base/units.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/layer_parameters.h"
#include "estimator/plan/optimizer_moments.h"
#include "estimator/plan/quantization.h"

namespace estimator {
namespace {

constexpr int64_t kSixteenBits = 2;
constexpr int64_t kFp32 = 4;

/// Bytes of one parameter, at least.
struct LeastState {
  int64_t whole = 0;   ///< that each data rank keeps
  int64_t shared = 0;  ///< that ZeRO divides among them
};

/// FSDP2 divides everything, most often in fp32; what others keep beside it does not count.
LeastState fully_sharded_state(const Plan& plan) {
  const TrainingConfig& t = plan.training;
  const bool is_in_16_bits =
      traits_of(t.framework).mixed_precision && t.parameter_dtype() != Dtype::kFp32;
  const int64_t copies = 2 + least_moments_of(t.optimizer);
  return {.whole = 0, .shared = copies * (is_in_16_bits ? kSixteenBits : kFp32)};
}

/// Master weights and moments on the GPU. Whole parameters are offloaded until their fraction is
/// reached (HybridDeviceOptimizer in Megatron-LM), so of an offloaded state nothing is sure.
int64_t least_optimizer_bytes(const Plan& plan) {
  const TrainingConfig& t = plan.training;
  if (t.optimizer_cpu_offload) return 0;
  const int64_t moments = least_moments_of(t.optimizer);
  const bool has_masters = traits_of(t.framework).master_weights && t.dtype != Dtype::kFp32;
  return has_masters ? kFp32 + moments * moment_bytes(t) : moments * kSixteenBits;
}

/// 4 bits of a weight count as none.
int64_t least_weight_bytes(const TrainingConfig& t) {
  return keeps_weights_quantized(t) ? quantization_of(t).bits / 8 : kSixteenBits;
}

/// Weights that do not change have nothing beside them, and what adapters need does not count.
LeastState frozen_state(const Plan& plan) {
  const bool is_shared = plan.parallelism.zero_stage >= 3;
  const int64_t weight = least_weight_bytes(plan.training);
  return is_shared ? LeastState{.whole = 0, .shared = weight}
                   : LeastState{.whole = weight, .shared = 0};
}

LeastState least_state(const Plan& plan) {
  if (plan.training.has_adapters()) return frozen_state(plan);
  if (plan.parallelism.divides_gradients()) return fully_sharded_state(plan);
  const TrainingConfig& t = plan.training;
  const FrameworkTraits& traits = traits_of(t.framework);
  const bool sums_in_fp32 = traits.gradient_type == GradientType::kFp32 &&
                            traits.gradient_keeping != GradientKeeping::kDeepspeed &&
                            !t.grad_reduce_in_bf16;
  const int64_t weight = least_weight_bytes(t);
  const int64_t gradient = sums_in_fp32 ? kFp32 : kSixteenBits;
  const int64_t optimizer = least_optimizer_bytes(plan);
  if (plan.parallelism.zero_stage > 0) return {.whole = weight + gradient, .shared = optimizer};
  return {.whole = weight + gradient + optimizer, .shared = 0};
}

}  // namespace

int64_t layers_alike(const Plan& plan, int64_t stage) {
  const std::vector<int64_t> chunks = plan.layers_of_chunks(stage);
  const int64_t layers = std::accumulate(chunks.begin(), chunks.end(), int64_t{0});
  return stage == 0 ? layers - plan.model.dense_layers_first().value_or(0) : layers;
}

int64_t most_layers_alike(const Plan& plan) {
  int64_t most = 0;
  for (int64_t stage = 0; stage < plan.parallelism.pipeline; ++stage) {
    most = std::max(most, layers_alike(plan, stage));
  }
  return most;
}

int64_t least_bytes(const Plan& plan) {
  const int64_t layers = most_layers_alike(plan);
  const LeastState state = least_state(plan);
  const auto bytes = [&](int64_t parameters, int64_t ranks, int64_t shards) {
    const int64_t own = layers * parameters / ranks;
    return own * state.whole + own / shards * state.shared;
  };
  const LayerParameters layer = layer_parameters(plan.model, plan.model.num_layers - 1);
  return bytes(layer.beside_experts, plan.parallelism.tensor, plan.shards()) +
         bytes(layer.of_experts, ranks_of_experts(plan), plan.expert_shards());
}

bool state_alone_is_too_large(const Plan& plan) {
  return plan.model.dense_layers_first() && least_bytes(plan) > gpu_of(plan.cluster).memory_bytes;
}

}  // namespace estimator
