#include "sim/cli/report/verify_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "estimator/base/errors.h"
#include "estimator/base/units.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/optimizer_moments.h"

namespace sim {
namespace {

using estimator::Plan;

constexpr int64_t kFp32Bytes = 4;

/// Of each parameter on each rank that holds it.
int64_t replicated_bytes(const Plan& plan) {
  return estimator::bytes_per_element(plan.training.dtype) + kFp32Bytes;
}

/// What the distributed optimizer divides over the data ranks.
int64_t optimizer_bytes(const Plan& plan) {
  const bool has_master_weights = plan.training.dtype != estimator::Dtype::kFp32;
  const int64_t moments = estimator::least_moments_of(plan.training.optimizer);
  return estimator::moment_bytes(plan.training) * moments + (has_master_weights ? kFp32Bytes : 0);
}

std::string rounded_gib(double bytes) {
  return fmt::format("{:.1f} GiB", bytes / (int64_t{1} << 30));
}

}  // namespace

int64_t least_verification_bytes(const Plan& plan) {
  const double parameters =
      static_cast<double>(estimator::parameter_count(plan.model, plan.padded_vocab_size()));
  const auto replicas = static_cast<double>(plan.replicas());
  const auto instances = static_cast<double>(plan.parallelism.num_distributed_optimizer_instances);
  const double states = plan.parallelism.zero_stage >= 1 ? instances : replicas;
  const double copies = plan.fully_sharded() ? instances : replicas;
  const auto replicated = static_cast<double>(replicated_bytes(plan));
  const auto optimizer = static_cast<double>(optimizer_bytes(plan));
  const double ranks = parameters * (copies * replicated + states * optimizer);
  const double whole = parameters * (replicated + optimizer);
  constexpr double kMost = 9e18;
  return static_cast<int64_t>(std::min(ranks + whole, kMost));
}

void require_memory_for_verification(const Plan& plan, int64_t available_bytes) {
  const int64_t least = least_verification_bytes(plan);
  if (least <= available_bytes) return;
  throw estimator::UserError(
      {.what = "this machine is too small to hold all ranks of the plan at once",
       .where = fmt::format("{} ranks and the whole model need more than {}, {} are available",
                            estimator::with_commas(plan.world_size()),
                            rounded_gib(static_cast<double>(least)),
                            rounded_gib(static_cast<double>(available_bytes))),
       .help =
           "verify a small model in the same layout, or start the ranks on several machines with "
           "torchrun or srun"},
      estimator::ExitCode::kMachineLacks);
}

}  // namespace sim
