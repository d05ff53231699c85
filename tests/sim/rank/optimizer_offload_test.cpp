// What optimizer offload leaves on the GPU and puts into the host's memory, to the byte. n: all
// parameters, m: those that the host updates. GPU: 2 n, 4 n, 4 (n - m), 8 (n - m); host: 4 m, 8 m
// and 4 m of gradients.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/sim/rank/executed_rank.h"

namespace sim {
namespace {

using estimator::Json;

constexpr int64_t kMi = 1024 * 1024;
constexpr int64_t kParameters = 2 * (12 * kMi + 13 * 1024) + (1024 + 512 + 2) * 1024;

Json offloaded(double fraction, Json changes = Json::object()) {
  changes["training"]["optimizer_cpu_offload"] = true;
  changes["training"]["optimizer_offload_fraction"] = fraction;
  changes["parallelism"]["zero_stage"] = 1;
  return changes;
}

void expect_states(const estimator::RankProfile& profile, int64_t on_host) {
  const estimator::ModelStateRecord& state = *profile.model_state;
  EXPECT_EQ(state.parameter_bytes, 2 * kParameters);
  EXPECT_EQ(state.gradient_bytes, 4 * kParameters);
  EXPECT_EQ(state.master_weight_bytes, 4 * (kParameters - on_host));
  EXPECT_EQ(state.optimizer_state_bytes, 8 * (kParameters - on_host));
  ASSERT_TRUE(profile.host_memory);
  EXPECT_EQ(profile.host_memory->master_weight_bytes, 4 * on_host);
  EXPECT_EQ(profile.host_memory->optimizer_state_bytes, 8 * on_host);
  EXPECT_EQ(profile.host_memory->gradient_bytes, 4 * on_host);
}

TEST(OptimizerOffload, OfAllLeavesParametersAndGradients) {
  expect_states(execute(gpt_plan(offloaded(1))), kParameters);
}

TEST(OptimizerOffload, OfNothingLeavesAll) {
  const auto profile = execute(gpt_plan(offloaded(0)));
  expect_states(profile, 0);
  EXPECT_TRUE(profile.host_memory->pieces.empty());
}

TEST(OptimizerOffload, OfAPartTakesPiecesUntilTheyAreTheFractionOrMore) {
  // Matrices come before vectors and, as the buffer turns them around, the last layer's first: MLP
  // 4 + 4, query key value 3, projection 1 (x Mi), which Megatron-LM registers before those. That
  // is 12 Mi of 12.8 Mi, so the next layer's 4 go as well.
  const auto profile = execute(gpt_plan(offloaded(0.5)));
  const std::vector<int64_t> pieces = {4 * kMi, 4 * kMi, 3 * kMi, 1 * kMi, 4 * kMi};
  expect_states(profile, 16 * kMi);
  EXPECT_EQ(profile.host_memory->pieces, pieces);
}

TEST(OptimizerOffload, IsOfTheDataRanksPart) {
  const auto profile = execute(gpt_plan(offloaded(1, {{"cluster", {{"gpus_per_node", 4}}}})));
  EXPECT_EQ(profile.model_state->master_weight_bytes, 0);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 0);
  EXPECT_EQ(profile.host_memory->master_weight_bytes, 4 * kParameters / 4);
}

TEST(OptimizerOffload, PageLocksPowersOfTwoAndKeepsThem) {
  // In MiB. Over whole parameters, in the model's order (embeddings 1 and 1/2 Mi, then 1, 3, 4, 4:
  // 13.5 Mi are more than half): a 16-bit copy that goes again and an fp32 one that stays, in
  // blocks of 2 + 4, 1 (and the 2 before), 2 + 4, 8 + 16, 16, 16: 69. Beside them this rank's
  // pieces, 4, 4, 3, 1, 4 Mi: 16 + 16 + 16 + 4 + 16 (the copies' blocks are there): 68. Their
  // gradients get what the whole ones left, 16 + 16 + 16 and 4, and one more of 16.
  const auto profile = execute(gpt_plan(offloaded(0.5)));
  const estimator::HostMemoryRecord& host = *profile.host_memory;
  EXPECT_EQ(host.page_locked_bytes, (69 + 68 + 16) * kMi);
  EXPECT_EQ(host.total_bytes, host.page_locked_bytes + host.optimizer_state_bytes);
}

TEST(OptimizerOffload, TakesWhatMegatronsOwnClassTakes) {
  // megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py @d98e8a6, given parameters of these
  // shapes in this order, first as they are and then flattened, under `onerank exec`: what it takes
  // of the GPU while it is built, and of page-locked memory in all.
  struct Row {
    double fraction;
    int64_t build_peak_bytes;
    int64_t page_locked_bytes;
  };
  for (const auto& [fraction, build_peak, page_locked] : {Row{1, 8'388'608, 242'477'056},
                                                          Row{0.5, 92'389'376, 160'432'128},
                                                          Row{0, 216'121'344, 0}}) {
    const auto profile = execute(gpt_plan(offloaded(fraction)));
    const estimator::PhaseRecord& build = profile.phases[1];
    EXPECT_EQ(build.name, "build_optimizer");
    EXPECT_EQ(build.peak.allocated_bytes - build.before.allocated_bytes, build_peak) << fraction;
    EXPECT_EQ(profile.host_memory->page_locked_bytes, page_locked) << fraction;
  }
}

TEST(OptimizerOffload, WithoutPageLockingIsTheTensorsBytesAndTheCopies) {
  Json changes = offloaded(1);
  changes["training"]["pin_cpu_grads"] = changes["training"]["pin_cpu_params"] = false;
  const estimator::HostMemoryRecord host = *execute(gpt_plan(changes)).host_memory;
  EXPECT_EQ(host.total_bytes - host.page_locked_bytes, 16 * kParameters);
}

TEST(OptimizerOffload, IsMissingFromTheAllocatorBetweenIterations) {
  // Master weights and moments, all whole blocks of 512 bytes, and the step counter.
  const auto after = [](const Json& changes) {
    return execute(gpt_plan(changes)).phases.back().after.allocated_bytes;
  };
  const int64_t without = after({{"parallelism", {{"zero_stage", 1}}}});
  EXPECT_EQ(without - after(offloaded(1)), 12 * kParameters + 512);
}

TEST(OptimizerOffload, TakesALargestPieceOfFp32OnItsWayBack) {
  // 4 Mi parameters; with overlap too, where they come from another stream's pool.
  for (const bool overlap : {false, true}) {
    Json changes = offloaded(1);
    changes["training"]["overlap_cpu_optimizer_d2h_h2d"] = overlap;
    const estimator::PhaseRecord step = execute(gpt_plan(changes)).phases.back();
    EXPECT_EQ(step.peak.allocated_bytes - step.before.allocated_bytes, 16 * kMi);
  }
}

TEST(OptimizerOffload, CostsThisMachineNoMemory) {
  // 24 x 4096^2 = 403e6 parameters are 6.4 GB on the host of a real rank.
  const auto profile = execute(
      gpt_plan(offloaded(1, {{"model", {{"hidden_size", 4096}}}, {"cluster", {{"gpu", "h100"}}}})));
  EXPECT_GT(profile.host_memory->total_bytes, 6'400'000'000);
  rusage children{};
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &children), 0);
  EXPECT_LT(children.ru_maxrss, 1024 * 1024);  // KiB, the largest child
}

}  // namespace
}  // namespace sim
