#include "sim/cli/report/verdict_report.h"

#include <fmt/format.h>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"

namespace sim {
namespace {

using estimator::ClusterEstimate;
using estimator::format_gib;
using estimator::with_commas;

}  // namespace

std::string verdict_text(const estimator::Verdict& verdict) {
  return fmt::format("{}: {}\n", estimator::fit_words(verdict.outcome), verdict.reason);
}

std::string lacking_gpus_text(const ClusterEstimate& estimate,
                              int64_t world_size,
                              bool can_offload,
                              const std::string& search) {
  if (!estimate.lacks_gpus(world_size)) return "";
  const estimator::WholeState& state = *estimate.whole_state;
  const std::string text = fmt::format(
      "Parameters, gradients and optimizer state alone need {} ({:.1f} bytes for each of {} "
      "parameters, as the executed ranks hold them), and a GPU has room for {}: at least {} GPUs "
      "of this kind{}, whose ranks share all of it (tensor and pipeline ranks, ZeRO).\n",
      format_gib(state.bytes()),
      static_cast<double>(state.bytes()) / static_cast<double>(state.parameters),
      with_commas(state.parameters),
      format_gib(state.usable_bytes),
      with_commas(state.fewest_gpus),
      can_offload
          ? fmt::format(" ({} with optimizer offload)", with_commas(state.fewest_gpus_offloaded))
          : "");
  return search.empty() ? text : text + "A layout is found by\n    " + search + "\n";
}

std::string lacking_ranks_text(int64_t state_bytes, const std::string& search) {
  if (search.empty()) return "";
  return fmt::format(
      "In this layout the weights, gradients and optimizer state of a rank need {} or more. The "
      "fastest layouts of these GPUs are found by\n    {}\n",
      format_gib(state_bytes),
      search);
}

std::string health_text(const estimator::Verdict& verdict, const estimator::MemoryHealth& health) {
  if (verdict.outcome == estimator::Fit::kDoesNotFit) return "";
  const double target = 100 * health.target_share;
  const bool is_healthy = health.level == estimator::HealthLevel::kHealthy;
  const bool is_above = health.level == estimator::HealthLevel::kAboveTarget;
  return fmt::format("health: {:.1f} % of the GPU's memory at the peak, {} ({})\n",
                     100 * health.used_share,
                     is_healthy ? fmt::format("within the target of {:.0f} %", target)
                     : is_above ? fmt::format("above the target of {:.0f} %", target)
                                : fmt::format("{}: above the target of {:.0f} %",
                                              estimator::to_string(health.level),
                                              target),
                     health.thresholds);
}

}  // namespace sim
