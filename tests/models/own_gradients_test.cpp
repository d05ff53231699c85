// Gradients that stay autograd's own for a while: DeepSpeed's and nanotron's (see
// gradient_buffer.h).
#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "models/data_parallel/gradient_buffer.h"
#include "models/optimizer/optimizer.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

/// Keeps what was reduced, and leaves it as it is.
class RecordingBackend final : public c10d::Backend {
 public:
  RecordingBackend() : c10d::Backend(0, 2) {}
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    reduced.push_back(tensors[0]);
    return {};
  }
  std::vector<at::Tensor> reduced;
};

/// Two parameters of ones, 3 and 2 elements, whose gradients are 10 and 20 for each micro-batch.
struct TwoParameters {
  TwoParameters(OwnGradients own, at::ScalarType dtype, bool sharded, bool two_ranks = false)
      : parameters(2) {
    parameters[0].value = at::full({3}, 1.0, dtype).requires_grad_(true);
    parameters[1].value = at::full({2}, 1.0, dtype).requires_grad_(true);
    if (two_ranks) backend = c10::make_intrusive<RecordingBackend>();
    buffer = std::make_unique<GradientBuffer>(
        list_of(parameters),
        GradientBufferOptions{
            .shape = {.sharded = sharded, .data_ranks = 1},
            .own_gradients = own,
            .flat_pieces = true,
            .data_group = two_ranks ? std::make_shared<Communicator>(backend) : nullptr,
            .observer = observer});
    buffer->begin_iteration();
  }

  void run_micro_batch() {
    buffer->start_backward();
    ((parameters[0].value * 10).sum() + (parameters[1].value * 20).sum()).backward();
    buffer->finish_backward();
  }
  double sum_of(int index) const { return parameters[index].main_gradient[0].item().toDouble(); }
  bool has_own(int index) const { return parameters[index].value.grad().defined(); }

  SilentObserver observer;
  std::deque<Parameter> parameters;
  c10::intrusive_ptr<RecordingBackend> backend;
  std::unique_ptr<GradientBuffer> buffer;
};

TEST(OwnGradients, UntilTheStepAreTheSumAndHaveNoBuffer) {
  TwoParameters two(OwnGradients::kUntilStep, at::kHalf, /*sharded=*/true);
  EXPECT_FALSE(two.buffer->gradients().defined());
  two.run_micro_batch();
  two.run_micro_batch();
  EXPECT_EQ(two.sum_of(0), 20);
  EXPECT_EQ(two.sum_of(1), 40);
  EXPECT_TRUE(two.parameters[0].main_gradient.is_same(two.parameters[0].value.grad()));
  two.buffer->begin_iteration();
  EXPECT_FALSE(two.has_own(0));
}

// The last parameter lies first, each at a multiple of 64: [40, 40, 0 ..., 20, 20, 20, 0 ...].
TEST(OwnGradients, AreCutAcrossParametersAndPadding) {
  TwoParameters two(OwnGradients::kUntilStep, at::kFloat, /*sharded=*/true);
  two.run_micro_batch();
  const Bucket& bucket = two.buffer->buckets()[0];
  const at::Tensor part = two.buffer->own_gradients(bucket, 1, 66);
  ASSERT_EQ(part.numel(), 65);
  EXPECT_EQ(part[0].item().toDouble(), 20);
  EXPECT_EQ(part.narrow(0, 1, 62).abs().sum().item().toDouble(), 0);
  EXPECT_EQ(part.narrow(0, 63, 2).sum().item().toDouble(), 20);
  EXPECT_EQ(two.buffer->own_gradients(bucket, 66, bucket.end).sum().item().toDouble(), 10);
}

TEST(OwnGradients, UntilTheStepAreReducedFlattened) {
  TwoParameters two(OwnGradients::kUntilStep, at::kHalf, /*sharded=*/false, /*two_ranks=*/true);
  two.run_micro_batch();
  two.buffer->finish_reduction();
  ASSERT_EQ(two.backend->reduced.size(), 1u);
  EXPECT_EQ(two.backend->reduced[0].numel(), 5);
  EXPECT_EQ(two.sum_of(0), 5);  // half of 10: the other rank's part is not added
  EXPECT_EQ(two.sum_of(1), 10);
}

TEST(OwnGradients, OfBf16OptimizerStayBesideTheirFp32SumUntilTheNextBackward) {
  TwoParameters two(OwnGradients::kUntilNextBackward, at::kBFloat16, /*sharded=*/true);
  two.run_micro_batch();
  EXPECT_TRUE(two.has_own(0));
  two.run_micro_batch();
  EXPECT_EQ(two.parameters[0].value.grad()[0].item().toDouble(), 10);  // of this micro-batch alone
  EXPECT_EQ(two.sum_of(0), 20);
  EXPECT_EQ(two.buffer->gradients().scalar_type(), at::kFloat);
}

TEST(OwnGradients, OfBf16OptimizerTravelAsOneBf16Copy) {
  TwoParameters two(
      OwnGradients::kUntilNextBackward, at::kBFloat16, /*sharded=*/false, /*two_ranks=*/true);
  two.run_micro_batch();
  two.buffer->finish_reduction();
  ASSERT_EQ(two.backend->reduced.size(), 1u);
  EXPECT_EQ(two.backend->reduced[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(two.backend->reduced[0].numel(), 5);
  EXPECT_EQ(two.sum_of(1), 10);
}

TEST(OwnGradients, UntilSummedAreGoneAfterTheBackward) {
  TwoParameters two(OwnGradients::kUntilSummed, at::kBFloat16, /*sharded=*/true);
  two.run_micro_batch();
  two.run_micro_batch();
  EXPECT_FALSE(two.has_own(0));
  EXPECT_EQ(two.sum_of(0), 20);
}

TEST(FlatOptimizer, HasItsStateAtTheStartAndStepsAllParameters) {
  TwoParameters two(OwnGradients::kUntilStep, at::kHalf, /*sharded=*/true);
  DistributedOptimizer optimizer(
      *two.buffer,
      {.learning_rate = 0.125, .weight_decay = 0, .state_at_start = true, .shared_step = true});
  const int64_t elements = two.buffer->buckets()[0].end;
  EXPECT_EQ(optimizer.master_weight_bytes(), 4 * elements);
  EXPECT_EQ(optimizer.state_bytes(), 8 * elements);
  two.run_micro_batch();
  optimizer.step();
  EXPECT_FALSE(two.has_own(0));
  // Adam's first step is the learning rate, whatever the gradient.
  EXPECT_NEAR(two.parameters[0].value.detach()[2].item().toDouble(), 0.875, 1e-3);
  EXPECT_NEAR(two.parameters[1].value.detach()[1].item().toDouble(), 0.875, 1e-3);
}

}  // namespace
}  // namespace models
