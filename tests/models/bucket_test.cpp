// Layouts worked by hand after Megatron-LM's rules (see gradient_buffer.h).
#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "models/data_parallel/gradient_buffer.h"
#include "models/data_parallel/reducer_buckets.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

std::deque<Parameter> empty_parameters(const std::vector<int64_t>& sizes) {
  std::deque<Parameter> parameters;
  for (const int64_t size : sizes) {
    Parameter& parameter = parameters.emplace_back();
    parameter.value = at::full({size}, 0.5).requires_grad_(true);
  }
  return parameters;
}

TEST(Buckets, HoldParametersInReverseOrderWithoutPadding) {
  auto parameters = empty_parameters({100, 30, 7});
  const auto buckets = lay_out_buckets(list_of(parameters), {.data_ranks = 4});
  ASSERT_EQ(buckets.size(), 1u);
  ASSERT_EQ(buckets[0].slots.size(), 3u);
  EXPECT_EQ(buckets[0].slots[0].parameter, &parameters[2]);
  EXPECT_EQ(buckets[0].slots[1].begin, 7);
  EXPECT_EQ(buckets[0].slots[2].end, 137);
  EXPECT_EQ(buckets[0].end, 137);
}

TEST(Buckets, OfTheDistributedOptimizerAlignParametersAndEnds) {
  auto parameters = empty_parameters({100, 30, 7});
  const auto buckets = lay_out_buckets(list_of(parameters), {.sharded = true, .data_ranks = 3});
  // 7 -> [0, 7); 30 starts at 64 -> [64, 94); 100 starts at 128 -> [128, 228); lcm(3, 128) = 384.
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].slots[1].begin, 64);
  EXPECT_EQ(buckets[0].slots[2].begin, 128);
  EXPECT_EQ(buckets[0].end, 384);
}

// Each two elements in one: 100 -> [0, 50); 400 starts at 64 -> [64, 264), and ends the bucket at
// 384; the last one has 15 of 30, and again 384.
TEST(Buckets, MayHoldPackedParametersByTheSameRules) {
  auto parameters = empty_parameters({30, 400, 100});
  const BufferShape shape{.sharded = true, .data_ranks = 3, .bucket_elements = 450};
  const auto places = packed_buckets(lay_out_buckets(list_of(parameters), shape), shape, 2);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].slots[0].end, 50);
  EXPECT_EQ(places[0].slots[1].begin, 64);
  EXPECT_EQ(places[0].slots[1].end, 264);
  EXPECT_EQ(places[1].begin, 384);
  EXPECT_EQ(places[1].slots[0].end, 399);
  EXPECT_EQ(places[1].end, 768);
}

TEST(Buckets, AreClosedOnceTheyReachTheLimit) {
  auto parameters = empty_parameters({10, 20, 30, 40});
  const auto buckets = lay_out_buckets(list_of(parameters), {.bucket_elements = 60});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].end, 70);   // 40 + 30
  EXPECT_EQ(buckets[1].end, 100);  // 20 + 10
}

std::vector<int64_t> sizes_of(const std::vector<Bucket>& buckets) {
  std::vector<int64_t> sizes;
  for (const Bucket& bucket : buckets) sizes.push_back(bucket.end - bucket.begin);
  return sizes;
}

// The first one is closed at 10 elements, the others at 60; each takes what fills it.
TEST(ReducersBuckets, AreClosedOnceTheyReachPyTorchsSizes) {
  auto parameters = empty_parameters({10, 20, 30, 15, 40});
  const ReducerShape shape{.first = 10, .others = 60};
  const auto buckets = lay_out_reducer_buckets(list_of(parameters), shape);
  EXPECT_EQ(sizes_of(buckets), (std::vector<int64_t>{10, 65, 40}));
  EXPECT_EQ(buckets[1].slots[0].parameter, &parameters[1]);
  EXPECT_EQ(buckets[2].begin, 75);
}

// DistributedDataParallel hands them over in reverse, each with its parameters in order.
TEST(ReducersBuckets, BeginWithTheLastWhereTheyAreReversed) {
  auto parameters = empty_parameters({10, 20, 40});
  const ReducerShape shape{.first = 1, .others = 60};
  const auto buckets = lay_out_reducer_buckets(list_of(parameters), shape, /*reversed=*/true);
  EXPECT_EQ(sizes_of(buckets), (std::vector<int64_t>{60, 10}));
  EXPECT_EQ(buckets[0].begin, 0);
  EXPECT_EQ(buckets[0].slots[0].parameter, &parameters[1]);
}

// Unless it looks for unused parameters it makes new ones, and begins with one of all.
TEST(ReducersBuckets, AreOneAtFirstWhereTheyAreMadeAgain) {
  auto parameters = empty_parameters({10, 20, 40});
  const ReducerShape shape{.first = 1, .others = 60};
  EXPECT_EQ(sizes_of(first_reducer_buckets(list_of(parameters), {.shape = shape})),
            std::vector<int64_t>{70});
  EXPECT_EQ(
      sizes_of(first_reducer_buckets(list_of(parameters), {.shape = shape, .finds_unused = true})),
      (std::vector<int64_t>{60, 10}));
}

std::deque<Parameter> matrices_of(const std::vector<std::vector<int64_t>>& shapes) {
  std::deque<Parameter> parameters;
  for (const auto& shape : shapes) {
    parameters.emplace_back().value = at::full(shape, 0.5).requires_grad_(true);
  }
  return parameters;
}

// Costs rows x columns x the smaller: 32 x 16 x 16 = 8,192 (two of them), 64 x 8 x 8 = 4,096 and
// 10 x 10 x 10 = 1,000. By falling cost, to who has least to do and room for 1.3 x 1,636 / 2 =
// 1,063 elements: rank 0 gets the first 32 x 16 (of element 0 to 512), rank 1 the second, rank 0
// the 64 x 8 (512 to 1,024), and rank 1 the 10 x 10 (512 to 612). A part is 1,024, a multiple
// of 64.
TEST(MatrixBuckets, DealMatricesByWhatTheyCost) {
  auto parameters = matrices_of({{64, 8}, {32, 16}, {10, 10}, {32, 16}});
  const auto buckets = lay_out_matrices(list_of(parameters), {.sharded = true, .data_ranks = 2});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].end, 2048);
  const auto begin_of = [&](std::size_t place) {
    for (const ParameterSlot& slot : buckets[0].slots) {
      if (slot.parameter == &parameters[place]) return slot.begin;
    }
    return int64_t{-1};
  };
  EXPECT_EQ(begin_of(3), 0);  // parameters come in reverse order
  EXPECT_EQ(begin_of(1), 1024);
  EXPECT_EQ(begin_of(0), 512);
  EXPECT_EQ(begin_of(2), 1024 + 512);
}

// A bucket of two parts is closed at 512 elements, unless the next matrix fits beside what it has:
// the third 16 x 16 would make another row of parts.
TEST(MatrixBuckets, AreClosedWhereTheNextMatrixWouldEnlargeThem) {
  auto parameters = matrices_of({{16, 16}, {16, 16}, {16, 16}, {16, 16}});
  const auto buckets = lay_out_matrices(list_of(parameters),
                                        {.sharded = true, .data_ranks = 2, .bucket_elements = 300});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].end, 512);
  EXPECT_EQ(buckets[1].begin, 512);
  EXPECT_EQ(buckets[1].slots.size(), 2u);
}

TEST(MatrixBuckets, NeverDivideAMatrix) {
  auto parameters = matrices_of({{64, 64}, {16, 16}, {16, 16}});
  const auto buckets = lay_out_matrices(list_of(parameters), {.sharded = true, .data_ranks = 4});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].end, 4 * 4096);
  for (const ParameterSlot& slot : buckets[0].slots) {
    EXPECT_EQ(slot.begin / 4096, (slot.end - 1) / 4096);
  }
}

TEST(Buckets, GiveASharedEmbeddingOneOfItsOwn) {
  auto parameters = empty_parameters({128, 128, 128});
  const auto buckets = lay_out_buckets(list_of(parameters),
                                       {.sharded = true, .data_ranks = 2, .tied = &parameters[1]});
  ASSERT_EQ(buckets.size(), 3u);
  ASSERT_EQ(buckets[1].slots.size(), 1u);
  EXPECT_EQ(buckets[1].slots[0].parameter, &parameters[1]);
}

// As Megatron-LM's buffers of a chunk each; there only the first chunk is cut.
TEST(Buckets, AreOfOneChunk) {
  auto parameters = empty_parameters({10, 20, 30, 40});
  parameters[2].chunk = parameters[3].chunk = 1;
  const auto buckets = lay_out_buckets(list_of(parameters), {.sharded = true, .data_ranks = 2});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].chunk, 1);
  EXPECT_EQ(buckets[0].end, 128);  // 40, 30 at 64, padded
  EXPECT_EQ(buckets[1].slots[0].begin, 128);
  EXPECT_EQ(buckets[1].chunk, 0);
  const BufferShape cut{.bucket_elements = 20, .cut_later_chunks = false};
  EXPECT_EQ(lay_out_buckets(list_of(parameters), cut).size(), 3u);  // 40 + 30, 20, 10
}

/// Counts the reductions that are started.
class CountingBackend final : public c10d::Backend {
 public:
  CountingBackend() : c10d::Backend(0, 2) {}
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    elements.push_back(tensors[0].numel());
    return {};
  }
  std::vector<int64_t> elements;
};

// Without overlap Megatron-LM reduces when deferred products are done.
TEST(GradientBuffer, StartsTheReductionsThatOverlapOnce) {
  const auto started = [](bool overlap) {
    auto parameters = empty_parameters({10, 20});
    SilentObserver observer;
    const auto backend = c10::make_intrusive<CountingBackend>();
    GradientBuffer buffer(list_of(parameters),
                          {.shape = {.data_ranks = 2},
                           .overlap = overlap,
                           .data_group = std::make_shared<Communicator>(backend),
                           .observer = observer});
    buffer.begin_iteration();
    buffer.start_reduction();
    const std::size_t before = backend->elements.size();
    buffer.finish_reduction();
    EXPECT_EQ(backend->elements, (std::vector<int64_t>{30}));
    return before;
  };
  EXPECT_EQ(started(true), 1u);
  EXPECT_EQ(started(false), 0u);
}

TEST(GradientBuffer, ReducesAChunkInItsOwnLastMicroBatch) {
  auto parameters = empty_parameters({10, 20});
  parameters[1].chunk = 1;
  SilentObserver observer;
  const auto backend = c10::make_intrusive<CountingBackend>();
  GradientBuffer buffer(list_of(parameters),
                        {.shape = {.data_ranks = 2},
                         .overlap = true,
                         .data_group = std::make_shared<Communicator>(backend),
                         .observer = observer});
  const auto backward = [&](int chunk) { (parameters[chunk].value * 2).sum().backward(); };
  buffer.begin_iteration();
  backward(1);
  backward(0);
  EXPECT_TRUE(backend->elements.empty());
  buffer.start_last_micro_batch(1);
  backward(0);  // an earlier micro-batch of the other chunk
  EXPECT_TRUE(backend->elements.empty());
  backward(1);
  EXPECT_EQ(backend->elements, (std::vector<int64_t>{20}));
  buffer.start_last_micro_batch(0);
  backward(0);
  buffer.finish_reduction();
  EXPECT_EQ(backend->elements, (std::vector<int64_t>{20, 10}));
}

TEST(GradientBuffer, PutsGradientsAndParametersIntoFlatBuffers) {
  auto parameters = empty_parameters({100, 30, 7});
  const at::Tensor before = parameters[1].value.detach().clone();
  SilentObserver observer;
  GradientBuffer buffer(list_of(parameters),
                        {.shape = {.sharded = true, .data_ranks = 1}, .observer = observer});
  EXPECT_EQ(buffer.gradients().numel(), 256);  // 228 rounded up to 128
  EXPECT_EQ(buffer.gradient_padding(), 256 - 137);
  EXPECT_EQ(parameters[1].value.data_ptr<float>(), buffer.parameters().data_ptr<float>() + 64);
  EXPECT_TRUE(parameters[1].value.detach().equal(before));

  buffer.begin_iteration();
  (parameters[1].value * 2).sum().backward();
  EXPECT_FALSE(parameters[1].value.grad().defined());
  EXPECT_EQ(buffer.gradients().narrow(0, 64, 30).sum().item().toDouble(), 60);
}

}  // namespace
}  // namespace models
