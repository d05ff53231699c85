// The list of what fills a peak against the allocator's own peak: stages of every plan in
// scripts/plans, with each kind of recompute.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "estimator/base/files.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/profile/peak_snapshot.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/ranks/rank_process.h"
#include "tests/paths.h"
#include "tests/sim/rank/executed_rank.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::MemoryCategory;
using estimator::PeakSnapshot;
using estimator::Plan;
using estimator::RankProfile;

struct ExecutedStages {
  std::vector<RankProfile> profiles;
  std::vector<PeakSnapshot> snapshots;
};

/// One rank of each class, and of many the first two, one in the middle and the last: those between
/// hold other numbers of micro-batches.
std::vector<int64_t> ranks_of(const Plan& plan) {
  std::vector<int64_t> ranks;
  for (const auto& rank_class : estimator::rank_classes(plan)) {
    ranks.push_back(rank_class.representative_rank);
  }
  if (ranks.size() > 4) ranks = {ranks[0], ranks[1], ranks[ranks.size() / 2], ranks.back()};
  return ranks;
}

/// Those ranks, with their peak snapshots.
ExecutedStages run_with_snapshots(const Plan& plan) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "peak.jsonl").string();
  RankJob job;
  job.ranks = ranks_of(plan);
  job.memory_files[kPeakSnapshot] = path;
  const Progress::Display silent{.write = [](std::string_view) {}};
  ExecutedStages run{.profiles = run_ranks(plan, job, current_environment(), silent)};
  for (const int64_t rank : job.ranks) {
    const std::string file = path_for_rank(path, rank, job.ranks.size());
    run.snapshots.push_back(estimator::read_peak_snapshot(estimator::read_file(file), file));
  }
  return run;
}

/// read_peak_snapshot() has checked that the lines add up to the header's peak.
void expect_lists_equal_to_the_allocators_peaks(const ExecutedStages& run) {
  for (std::size_t i = 0; i < run.profiles.size(); ++i) {
    int64_t allocators_peak = 0;
    for (const auto& phase : run.profiles[i].phases) {
      allocators_peak = std::max(allocators_peak, phase.peak.allocated_bytes);
    }
    EXPECT_EQ(run.snapshots[i].header.peak.allocated_bytes, allocators_peak)
        << "rank " << run.profiles[i].rank;
    EXPECT_EQ(run.profiles[i].peak.categories->sum(), allocators_peak);
  }
}

class PeakListOfPlan : public testing::TestWithParam<std::string> {};

TEST_P(PeakListOfPlan, AddsUpToTheAllocatorsPeakWithAndWithoutRecompute) {
  const std::string path = std::string(tests::kPlans) + "/" + GetParam();
  Json tree = estimator::parse_json(estimator::read_file(path), path);
  for (const char* recompute : {"none", "selective", "full"}) {
    tree["training"]["recompute"] = recompute;
    SCOPED_TRACE(recompute);
    expect_lists_equal_to_the_allocators_peaks(
        run_with_snapshots(estimator::resolve_plan(tree, {})));
  }
}

std::vector<std::string> plan_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(tests::kPlans)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return !std::isalnum(letter); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Scripts, PeakListOfPlan, testing::ValuesIn(plan_names()), test_name);

int64_t bytes_of(const PeakSnapshot& snapshot, MemoryCategory category) {
  int64_t bytes = 0;
  for (const auto& allocation : snapshot.allocations) {
    if (allocation.category == category) bytes += allocation.requested_bytes;
  }
  return bytes;
}

TEST(PeakSnapshotOfARank, HoldsTheModelsStateToTheByte) {
  // What is asked for, without the allocator's rounding; fp16 with AdamW, 3 data ranks: padding.
  const ExecutedStages run = run_with_snapshots(gpt_plan({{"cluster", {{"gpus_per_node", 3}}},
                                                          {"training", {{"global_batch_size", 12}}},
                                                          {"parallelism", {{"zero_stage", 1}}}}));
  const auto& state = *run.profiles[0].model_state;
  const PeakSnapshot& snapshot = run.snapshots[0];
  EXPECT_EQ(bytes_of(snapshot, MemoryCategory::kParameter),
            state.parameter_bytes + state.parameter_padding_bytes);
  EXPECT_EQ(bytes_of(snapshot, MemoryCategory::kGradient),
            state.gradient_bytes + state.gradient_padding_bytes + state.gradient_stand_in_bytes);
  EXPECT_EQ(bytes_of(snapshot, MemoryCategory::kMasterWeight), state.master_weight_bytes);
  EXPECT_EQ(bytes_of(snapshot, MemoryCategory::kOptimizerState),
            state.optimizer_state_bytes + state.step_scalar_bytes);
}

TEST(PeakSnapshotOfARank, HoldsTheActivationsOfAMicroBatchToTheByte) {
  // The peak of a single stage is in backward, when the last forward's activations begin to go:
  // the loss's alone, which are at the end of the model.
  const ExecutedStages run = run_with_snapshots(gpt_plan());
  const PeakSnapshot& snapshot = run.snapshots[0];
  int64_t of_layer_0 = 0, of_layer_1 = 0;
  for (const auto& allocation : snapshot.allocations) {
    if (allocation.category != MemoryCategory::kActivation) continue;
    if (allocation.module.rfind("layers.0", 0) == 0) of_layer_0 += allocation.bytes;
    if (allocation.module.rfind("layers.1", 0) == 0) of_layer_1 += allocation.bytes;
  }
  // Korthikanti et al. 2022: s b h (34 + 5 a s / h), and 16 s b of LayerNorm statistics; see
  // activation_memory_test.cpp. The input of layer 0 is the embedding's, its output layer 1's.
  constexpr int64_t s = 512, b = 4, h = 1024, a = 16;
  EXPECT_EQ(of_layer_0, s * b * h * 34 + 5 * a * s * s * b + 16 * s * b);
  EXPECT_LE(of_layer_1, of_layer_0);
}

TEST(PeakSnapshotOfARank, TellsWhoWroteItAndOfWhat) {
  const ExecutedStages run = run_with_snapshots(
      gpt_plan({{"cluster", {{"gpus_per_node", 4}}}, {"parallelism", {{"tensor", 2}}}}));
  const auto& header = run.snapshots[0].header;
  EXPECT_EQ(header.rank, 0);
  EXPECT_EQ(header.world_size, 4);
  EXPECT_EQ(header.layout.tensor, 2);
  EXPECT_EQ(header.layout.data, 2);
  EXPECT_EQ(header.tool.name, "onerank");
  EXPECT_NE(header.tool.version, "");
  EXPECT_EQ(header.tool.torch, "2.11.0");
}

}  // namespace
}  // namespace sim
