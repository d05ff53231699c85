#include "estimator/what_if/fit_probe.h"

#include <algorithm>

#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/communication/fabric.h"
#include "estimator/hardware/hardware.h"

namespace estimator {
namespace {

/// The class of a stage, or of the nearest stage there is.
std::size_t class_of_stage(const std::vector<RankClass>& classes, int64_t stage) {
  const auto found = std::find_if(classes.begin(), classes.end(), [&](const RankClass& c) {
    return std::find(c.stages.begin(), c.stages.end(), stage) != c.stages.end();
  });
  return found == classes.end() ? classes.size() - 1
                                : static_cast<std::size_t>(found - classes.begin());
}

}  // namespace

FitAnswer probe_fit(const Plan& plan, int64_t likely_stage, const PlanRunner& runner) {
  const std::vector<RankClass> classes = rank_classes(plan);
  const std::size_t likely = class_of_stage(classes, likely_stage);
  std::vector<RankProfile> profiles = runner.run(plan, {classes[likely].representative_rank});
  const Gpu& gpu = gpu_of(plan.cluster);
  const RankClassEstimate row = class_memory(
      plan, classes[likely], profiles.front(), ParallelLayout(plan.parallelism), fabric_of(plan));
  const Verdict alone = memory_verdict(plan.memory.headroom_bytes, gpu, {row});
  if (alone.outcome == Fit::kDoesNotFit && classes.size() > 1) {
    return {.fit = alone.outcome, .peak_bytes = alone.peak_bytes, .estimate = std::nullopt};
  }

  std::vector<int64_t> others;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (i != likely) others.push_back(classes[i].representative_rank);
  }
  if (!others.empty()) {
    for (RankProfile& profile : runner.run(plan, others)) profiles.push_back(std::move(profile));
  }
  FitAnswer answer;
  answer.estimate =
      estimate_cluster(plan, profiles, runner.calibration ? &*runner.calibration : nullptr);
  answer.fit = answer.estimate->verdict.outcome;
  answer.peak_bytes = answer.estimate->verdict.peak_bytes;
  return answer;
}

FirstThatFits first_that_fits(std::size_t steps,
                              const std::function<FitAnswer(std::size_t step)>& probe) {
  FirstThatFits found{0, probe(0)};
  if (found.answer.fits() || steps == 1) return found;
  std::size_t does_not = 0;
  found = {steps - 1, probe(steps - 1)};
  if (!found.answer.fits()) return found;
  while (found.step - does_not > 1) {
    const std::size_t middle = (found.step + does_not) / 2;
    FitAnswer answer = probe(middle);
    if (answer.fits()) {
      found = {middle, std::move(answer)};
    } else {
      does_not = middle;
    }
  }
  return found;
}

int64_t worst_stage(const ClusterEstimate& estimate) {
  for (const RankClassEstimate& row : estimate.rank_classes) {
    if (row.representative_rank == estimate.verdict.worst_rank) return row.coordinate.pipeline;
  }
  return 0;
}

}  // namespace estimator
