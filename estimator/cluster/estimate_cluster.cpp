#include "estimator/cluster/estimate_cluster.h"

#include <fmt/format.h>

#include <stdexcept>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/cluster/estimate_notes.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/cluster/offload_memory.h"
#include "estimator/cluster/profile_match.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/cluster/training_estimate.h"
#include "estimator/cluster/whole_state.h"
#include "estimator/communication/fabric.h"
#include "estimator/compute/compute_time.h"
#include "estimator/compute/host_rates.h"
#include "estimator/compute/model_flops.h"
#include "estimator/step/limited_stages.h"

namespace estimator {
namespace {

Throughput throughput_of(const Plan& plan, const Gpu& gpu, double iteration_seconds) {
  const StepFlops flops = step_flops(plan);
  const auto world = static_cast<double>(plan.world_size());
  const double peak_of_all = world * gpu.peak_flops(plan.training.dtype);
  Throughput throughput;
  throughput.tokens_per_second = static_cast<double>(plan.tokens_per_step()) / iteration_seconds;
  throughput.tokens_per_second_per_gpu = throughput.tokens_per_second / world;
  throughput.model_flops_per_second_per_gpu = flops.model / iteration_seconds / world;
  throughput.mfu = flops.model / iteration_seconds / peak_of_all;
  throughput.hfu = flops.hardware / iteration_seconds / peak_of_all;
  throughput.mfu_full_attention = flops.model_full_attention / iteration_seconds / peak_of_all;
  return throughput;
}

void use_step(double seconds, const Plan& plan, ClusterEstimate& estimate) {
  const Gpu& gpu = gpu_of(plan.cluster);
  estimate.throughput = throughput_of(plan, gpu, seconds);
  estimate.training = training_estimate(training_run(plan), gpu, seconds);
}

/// What the estimate and the timeline of a cluster are made from.
struct PricedCluster {
  PricedCluster(const Plan& plan,
                const std::vector<RankProfile>& profiles,
                const Calibration* calibration,
                bool keep_works = false)
      : classes(rank_classes(plan)),
        matched(match_profiles(plan, classes, profiles)),
        layout(plan.parallelism),
        gpu(gpu_of(plan.cluster)),
        fabric(fabric_of(plan)),
        target(compute_target(plan, gpu, calibration)),
        limited(limited_stages(groups(),
                               {.plan = plan,
                                .compute = target,
                                .layout = layout,
                                .fabric = fabric,
                                .keep_works = keep_works})) {}

  std::vector<StageGroup> groups() const {
    std::vector<StageGroup> groups;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      groups.push_back({.profile = matched[i], .stages = classes[i].stages});
    }
    return groups;
  }

  std::vector<RankClass> classes;
  std::vector<const RankProfile*> matched;  ///< of each class
  ParallelLayout layout;
  const Gpu& gpu;
  Fabric fabric;
  ComputeTarget target;
  LimitedStages limited;
};

}  // namespace

MeasuredStep measured_step(double seconds, double estimated_seconds) {
  if (!(estimated_seconds > 0)) {
    throw UserError(
        {.what = "there is no estimated step with which the measured one could be compared",
         .where = fmt::format("--measured-step = {}", seconds),
         .help = "leave it out: the ranks that were run have no work with a price"});
  }
  return {.seconds = seconds,
          .estimated_seconds = estimated_seconds,
          .factor = seconds / estimated_seconds};
}

void require_below_peak(const MeasuredStep& measured, double mfu, double most) {
  if (!(mfu > most)) return;
  throw UserError(
      {.what = "in the measured step each GPU would do more than its peak",
       .where = fmt::format("--measured-step = {}: MFU {:.1f} %; at the peak it takes {}",
                            measured.seconds,
                            100 * mfu,
                            format_duration(measured.seconds * mfu / most)),
       .help = "give the seconds of a whole iteration with all its micro-batches, and the batch, "
               "the sequence, the GPUs and the dtype that it was measured with"});
}

void use_estimated_step(const Plan& plan, ClusterEstimate& estimate) {
  use_step(estimate.time.iteration_seconds, plan, estimate);
}

void use_measured_step(double seconds, const Plan& plan, ClusterEstimate& estimate) {
  estimate.measured_step = measured_step(seconds, estimate.time.iteration_seconds);
  use_step(seconds, plan, estimate);
  require_below_peak(*estimate.measured_step, estimate.throughput.mfu);
  for (Advice& advice : estimate.advice) {
    if (advice.gain_seconds) *advice.gain_seconds *= estimate.measured_step->factor;
  }
}

StepTimeline cluster_timeline(const Plan& plan,
                              const std::vector<RankProfile>& profiles,
                              const Calibration* calibration) {
  const PricedCluster cluster(plan, profiles, calibration, /*keep_works=*/true);
  return step_timeline(plan, cluster.layout, cluster.fabric, cluster.limited.stages);
}

ClusterEstimate estimate_cluster(const Plan& plan,
                                 const std::vector<RankProfile>& profiles,
                                 const Calibration* calibration) {
  const PricedCluster cluster(plan, profiles, calibration);
  const auto& [classes, matched, layout, gpu, fabric, target, limited] = cluster;

  ClusterEstimate estimate;
  estimate.tool = matched.front()->tool;
  estimate.plan = to_json(plan);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto stage = static_cast<std::size_t>(classes[i].stages.front());
    const StageTime& time = limited.stages[stage];
    RankClassEstimate row = class_memory(plan, classes[i], *matched[i], layout, fabric);
    row.forward_seconds = time.forward().total_seconds();
    row.backward_seconds = time.backward().total_seconds();
    row.board = limited.boards[i];
    estimate.rank_classes.push_back(std::move(row));
  }
  estimate.whole_state = whole_state(plan, gpu, classes, matched);
  estimate.host_memory = host_memory(plan, layout, classes, matched);
  estimate.verdict = memory_verdict(plan.memory.headroom_bytes, gpu, estimate.rank_classes);
  estimate.time = limited.step;
  use_estimated_step(plan, estimate);
  estimate.rates =
      target.rates().terms(plan.training.dtype, plan.training.attention != Attention::kUnfused);
  if (plan.training.optimizer_cpu_offload) {
    for (RateTerm& rate : host_rate_terms(plan)) estimate.rates.push_back(std::move(rate));
  }
  estimate.assumptions = assumptions_of(plan, gpu, fabric, matched);
  estimate.not_modelled = gaps_of(plan);
  return estimate;
}

}  // namespace estimator
