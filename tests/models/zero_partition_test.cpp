// DeepSpeed's ZeRO stages 1 and 2 (see zero_partition.h).
#include "models/data_parallel/zero_partition.h"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "tests/models/small_shards.h"

namespace models {
namespace {

// Three parameters of 6, 2 and 4 elements, in reverse as gradients come, over partitions of 4.
TEST(ZeroPartition, CutsGradientsWhereTheirRanksChange) {
  EXPECT_EQ(rank_slices({{{8, 12}, 4}, {{6, 8}, 4}, {{0, 6}, 4}}),
            (std::vector<RankSlice>{{2, 4}, {1, 2}, {0, 4}, {1, 2}}));
  EXPECT_EQ(rank_slices({{{2, 4}, 4}, {{0, 2}, 4}}), (std::vector<RankSlice>{{0, 4}}));
}

/// Keeps the sizes of what was reduced, and leaves it as it is.
class PartitionBackend final : public c10d::Backend {
 public:
  PartitionBackend(int rank, int size) : c10d::Backend(rank, size) {}
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    reduced.push_back(tensors[0].numel());
    return {};
  }
  std::vector<int64_t> reduced;
};

using Elements = std::vector<int64_t>;

/// A rank of two with parameters of 3, 5 and 1 elements, which are padded to 12, of which it has 6.
/// A micro-batch gives each element of parameter i the gradient 10 (i + 1).
struct ThreeParameters {
  ThreeParameters(int rank,
                  int64_t stage,
                  int64_t bucket_elements,
                  bool overlap = false,
                  std::ptrdiff_t first_group = 3)
      : parameters(3), backend(c10::make_intrusive<PartitionBackend>(rank, 2)) {
    for (std::size_t i = 0; i < 3; ++i) {
      parameters[i].value = at::full({Elements{3, 5, 1}[i]}, 1.0, at::kHalf).requires_grad_(true);
    }
    const ParameterList all = list_of(parameters);
    std::vector<ParameterList> groups = {{all.begin(), all.begin() + first_group}};
    if (first_group < 3) groups.emplace_back(all.begin() + first_group, all.end());
    zero = std::make_unique<ZeroPartition>(
        groups,
        ZeroPartitionOptions{.stage = stage,
                             .bucket_elements = bucket_elements,
                             .overlap = overlap,
                             .device = at::kCPU,
                             .data_group = std::make_shared<Communicator>(backend),
                             .observer = observer});
    zero->begin_iteration();
  }

  void run_micro_batch(bool is_last) {
    if (is_last) zero->start_last_micro_batch(0);
    at::Tensor loss = (parameters[2].value * 30).sum();
    loss = loss + (parameters[1].value * 20).sum();
    (loss + (parameters[0].value * 10).sum()).backward();
    zero->finish_backward();
  }

  std::vector<float> step_gradient() {
    const at::Tensor all = zero->step_gradients(at::kFloat).at(0);
    return {all.data_ptr<float>(), all.data_ptr<float>() + all.numel()};
  }

  SilentObserver observer;
  std::deque<Parameter> parameters;
  c10::intrusive_ptr<PartitionBackend> backend;
  std::unique_ptr<ZeroPartition> zero;
};

// Each half of what the two ranks would sum: rank 0 has three of 5 and three of 10, rank 1 two of
// 10, one of 15 and three of padding.
TEST(ZeroPartition, OfEachRankHasItsPartOfTheGradients) {
  for (const int64_t stage : {1, 2}) {
    for (const bool overlap : {false, true}) {
      SCOPED_TRACE(testing::Message() << stage << overlap);
      ThreeParameters first(0, stage, 100, overlap), second(1, stage, 100, overlap);
      for (ThreeParameters* rank : {&first, &second}) {
        rank->run_micro_batch(true);
        rank->zero->finish_reduction();
      }
      EXPECT_EQ(first.step_gradient(), (std::vector<float>{5, 5, 5, 10, 10, 10}));
      EXPECT_EQ(second.step_gradient(), (std::vector<float>{10, 10, 15, 0, 0, 0}));
    }
  }
}

TEST(ZeroPartition, AddsUpMicroBatches) {
  for (const int64_t stage : {1, 2}) {
    ThreeParameters rank(0, stage, 100);
    for (const bool is_last : {false, false, true}) rank.run_micro_batch(is_last);
    rank.zero->finish_reduction();
    EXPECT_EQ(rank.step_gradient(), (std::vector<float>{15, 15, 15, 30, 30, 30}));
  }
}

// Stage 2 after each micro-batch, stage 1 once; the last call of a step is of the norm.
TEST(ZeroPartition, ReducesOnceForAStepOrForEachMicroBatch) {
  for (const auto& [stage, calls] : {std::pair{1, Elements{9, 1}}, {2, Elements{9, 9, 1}}}) {
    ThreeParameters rank(0, stage, 100);
    rank.run_micro_batch(false);
    rank.run_micro_batch(true);
    rank.zero->finish_reduction();
    rank.step_gradient();
    EXPECT_EQ(rank.backend->reduced, calls);
  }
}

// Stage 1 takes the parameters in their order. 3 and 5 do not fit into a bucket of 4: the first is
// reduced alone, and the second, larger than the bucket, where it lies; then the third.
TEST(ZeroPartition, ReducesWhatIsLargerThanTheBucketWhereItLies) {
  ThreeParameters rank(0, 1, 4);
  rank.run_micro_batch(true);
  rank.zero->finish_reduction();
  EXPECT_EQ(rank.backend->reduced, (Elements{3, 5, 1}));
  EXPECT_EQ(rank.step_gradient(), (std::vector<float>{5, 5, 5, 10, 10, 10}));
}

// Of a bucket of 2, the second parameter has a slice of 3 for rank 0, and one of 2 for rank 1.
TEST(ZeroPartition, ReducesSlicesTogetherUntilTheyAreMoreThanABucket) {
  ThreeParameters rank(0, 1, 2);
  rank.run_micro_batch(true);
  rank.zero->finish_reduction();
  EXPECT_EQ(rank.backend->reduced, (Elements{3, 3, 2, 1}));
  EXPECT_EQ(rank.step_gradient(), (std::vector<float>{5, 5, 5, 10, 10, 10}));
}

// The second and third parameter are of another group: each has a partition of its own, of 2 and of
// 4 elements, a gradient for the step, and a norm.
TEST(ZeroPartition, UpdatesEachGroupOfParametersByItself) {
  ThreeParameters rank(0, 2, 100, false, /*first_group=*/1);
  rank.run_micro_batch(true);
  const std::vector<at::Tensor> gradients = rank.zero->step_gradients(at::kFloat);
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_EQ(gradients[0].sum().item().toDouble(), 2 * 5);
  EXPECT_EQ(gradients[1].sum().item().toDouble(), 4 * 10);
  EXPECT_EQ(rank.backend->reduced, (Elements{9, 1, 1}));
  EXPECT_EQ(rank.zero->parameter_padding(), 1 + 2);
}

TEST(ZeroPartition, KeepsTheValuesOfParametersAndMovesThemIntoOneTensor) {
  ThreeParameters rank(0, 2, 100);
  EXPECT_EQ(rank.zero->parameter_padding(), 3);
  for (const Parameter& parameter : rank.parameters) {
    EXPECT_EQ(parameter.value.sum().item().toDouble(), parameter.value.numel());
  }
  EXPECT_TRUE(rank.parameters[2].value.is_alias_of(rank.parameters[0].value));
  rank.zero->optimizer_pieces().at(0).weights.fill_(2);
  EXPECT_EQ(rank.parameters[1].value.sum().item().toDouble(), 3 * 2 + 2);
}

}  // namespace
}  // namespace models
