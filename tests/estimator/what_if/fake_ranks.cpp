#include "tests/estimator/what_if/fake_ranks.h"

#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/hardware/hardware.h"
#include "tests/estimator/test_plans.h"

namespace estimator {

PlanRunner FakeRanks::runner() {
  return {.run = [this](const Plan& plan, const std::vector<int64_t>& ranks) {
    std::vector<RankProfile> profiles;
    for (const int64_t rank : ranks) profiles.push_back(profile(plan, rank));
    return profiles;
  }};
}

ClusterEstimate FakeRanks::estimate(const Plan& plan) {
  std::vector<int64_t> representatives;
  for (const auto& c : rank_classes(plan)) {
    representatives.push_back(c.representative_rank);
  }
  return estimate_cluster(plan, runner().run(plan, representatives));
}

RankProfile FakeRanks::profile(const Plan& plan, int64_t rank) {
  ++ranks_run_;
  RankProfile profile = profile_without_work(plan, rank);
  profile.phases.push_back({"iteration_1.forward_backward", {}, {}, {}, 0});
  const int64_t bytes = peak_(plan, profile.coordinate.pipeline);
  profile.peak = {bytes, bytes, "iteration_1.forward_backward", "", ""};
  if (!seconds_) return profile;
  OperatorRecord kernel;
  kernel.name = "aten::test";
  kernel.dtype = "Float";
  kernel.direction = Direction::kForward;
  kernel.count = plan.micro_batches();
  kernel.flops = seconds_(plan) * find_gpu(plan.cluster.gpu)->peak_flops(Dtype::kFp32);
  profile.operators.push_back(kernel);
  return profile;
}

}  // namespace estimator
