#include "estimator/plan/megatron_core.h"

#include <charconv>
#include <string_view>

#include "estimator/base/text.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/quantization.h"

namespace estimator {

int minor_version_of_core(std::string_view version) {
  if (!version.starts_with("0.")) return -1;
  version.remove_prefix(2);
  int minor = -1;
  const char* const behind = version.data() + version.size();
  const auto [end, error] = std::from_chars(version.data(), behind, minor);
  const std::string_view rest(end, static_cast<std::size_t>(behind - end));
  const bool is_patch = rest.starts_with('.') && is_digits(rest.substr(1));
  return error == std::errc() && (rest.empty() || is_patch) ? minor : -1;
}

bool output_stand_in_lasts(const TrainingConfig& training) {
  constexpr int kFirst = 14;
  return training.megatron_core.empty() || minor_version_of_core(training.megatron_core) >= kFirst;
}

GatherStart gather_start(const Plan& plan) {
  constexpr int kFirst = 9;
  const std::string& version = plan.training.megatron_core;
  if (!version.empty() && minor_version_of_core(version) < kFirst)
    return GatherStart::kFirstWithStep;
  return plan.parallelism.virtual_stages > 1 ? GatherStart::kAllWithStep : GatherStart::kAtFirstUse;
}

bool gathers_in_turn(const Plan& plan) {
  return plan.parallelism.pipeline > 1 && gather_start(plan) == GatherStart::kAtFirstUse;
}

bool overlaps_linear_backward(const Plan& plan) {
  constexpr int kFirst = 1;
  const std::string& version = plan.training.megatron_core;
  return traits_of(plan.training.framework).overlapped_linear_backward &&
         !plan.parallelism.tp_comm_overlap &&
         (version.empty() || minor_version_of_core(version) >= kFirst);
}

int64_t fused_softmax_keys(const TrainingConfig& training) {
  constexpr int64_t kOfMegatron = 4096, kOfNeox = 2048;
  const bool has_kernel = traits_of(training.framework).megatron_fusions;
  if (!has_kernel || !training.masked_softmax_fusion) return 0;
  const bool is_first = minor_version_of_core(training.megatron_core) == 0;  // had no core
  return training.framework == Framework::kMegatronLm && !is_first ? kOfMegatron : kOfNeox;
}

namespace {

/// Weights that are gathered in the memory of the gradients wait until all optimizers have read
/// these: since core 0.18 (_should_defer_mxfp8_param_sync in megatron/core/optimizer/optimizer.py).
bool gathers_after_all_steps(const TrainingConfig& training) {
  constexpr int kFirst = 18;
  const std::string& version = training.megatron_core;
  return training.fp8_param_gather && quantization_of(training).gathers_in_16_bits &&
         (version.empty() || minor_version_of_core(version) >= kFirst);
}

}  // namespace

int gathers_with_experts(const Plan& plan) {
  const bool chained = traits_of(plan.training.framework).chained_optimizers &&
                       !plan.parallelism.overlap_param_gather;
  return chained && !gathers_after_all_steps(plan.training) ? 2 : 1;
}

}  // namespace estimator
