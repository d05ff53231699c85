#include "estimator/what_if/fit_probe.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

/// One rank of each class that was not run.
std::vector<int64_t> ranks_left(const std::vector<RankClass>& classes,
                                const std::vector<RankProfile>& run) {
  std::vector<int64_t> left;
  for (const RankClass& c : classes) {
    const bool was_run = std::any_of(run.begin(), run.end(), [&](const RankProfile& profile) {
      return profile.rank == c.representative_rank;
    });
    if (!was_run) left.push_back(c.representative_rank);
  }
  return left;
}

}  // namespace

FitAnswer probe_fit(const Plan& plan, int64_t likely_stage, const PlanRunner& runner) {
  const std::vector<RankClass> classes = rank_classes(plan);
  const std::size_t likely = class_of_stage(classes, likely_stage);
  FitAnswer answer;
  answer.profiles = runner.run(plan, {classes[likely].representative_rank});
  const RankClassEstimate row = class_memory(plan,
                                             classes[likely],
                                             answer.profiles.front(),
                                             ParallelLayout(plan.parallelism),
                                             fabric_of(plan));
  const Verdict alone = memory_verdict(plan.memory.headroom_bytes, gpu_of(plan.cluster), {row});
  answer.fit = alone.outcome;
  answer.peak_bytes = alone.peak_bytes;
  if (alone.outcome != Fit::kDoesNotFit || classes.size() == 1) complete_fit(plan, runner, answer);
  return answer;
}

void complete_fit(const Plan& plan, const PlanRunner& runner, FitAnswer& answer) {
  if (answer.estimate) return;
  const std::vector<int64_t> left = ranks_left(rank_classes(plan), answer.profiles);
  if (!left.empty()) {
    std::vector<RankProfile> others = runner.run(plan, left);
    std::move(others.begin(), others.end(), std::back_inserter(answer.profiles));
  }
  answer.estimate =
      estimate_cluster(plan, answer.profiles, runner.calibration ? &*runner.calibration : nullptr);
  answer.profiles.clear();
  answer.fit = answer.estimate->verdict.outcome;
  answer.peak_bytes = answer.estimate->verdict.peak_bytes;
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
