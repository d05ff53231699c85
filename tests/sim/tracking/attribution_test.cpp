// What the allocations at a peak are said to be for.
#include "sim/tracking/attribution.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sim/recording/recorder.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::DirectionScope;
using estimator::MemoryCategory;
using estimator::ModuleScope;
using estimator::PeakAllocation;

constexpr int64_t kBlock = 4096;

at::Tensor block() { return at::empty({kBlock}, at::kByte); }

class Attribution : public testing::Test {
 protected:
  Attribution() { recorder_.begin_phase("iteration_1.forward_backward"); }

  /// The only allocation of `bytes` at the peak.
  PeakAllocation at_peak(int64_t bytes = kBlock) {
    recorder_.end_phase();
    std::vector<PeakAllocation> found;
    for (const PeakAllocation& allocation : recorder_.peak_allocations()) {
      if (allocation.bytes == bytes) found.push_back(allocation);
    }
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? PeakAllocation{} : found.front();
  }

  std::unique_ptr<MemoryReader> memory_ = make_memory_reader(estimator::DeviceKind::kCpu);
  Recorder recorder_{{.memory = *memory_}};
};

TEST_F(Attribution, WhatForwardHoldsAtItsEndIsActivation) {
  at::Tensor kept;
  {
    const DirectionScope direction(recorder_, Direction::kForward, 7);
    const ModuleScope layer(recorder_, "layers.3");
    const ModuleScope mlp(recorder_, "mlp");
    kept = at::empty({2, 2048}, at::kByte);
  }
  const PeakAllocation allocation = at_peak();
  EXPECT_EQ(allocation.category, MemoryCategory::kActivation);
  EXPECT_EQ(allocation.module, "layers.3.mlp");
  EXPECT_EQ(allocation.operator_name, "aten::empty");
  EXPECT_EQ(allocation.direction, Direction::kForward);
  EXPECT_EQ(allocation.micro_batch, 7);
  EXPECT_EQ(allocation.phase, "iteration_1.forward_backward");
  EXPECT_EQ(allocation.shape, (std::vector<int64_t>{2, 2048}));
  EXPECT_EQ(allocation.dtype, "Byte");
  EXPECT_TRUE(allocation.made_the_peak);
}

TEST_F(Attribution, WhatForwardFreesIsTemporary) {
  {
    const DirectionScope direction(recorder_, Direction::kForward, 0);
    const at::Tensor freed = block();
  }
  EXPECT_EQ(at_peak().category, MemoryCategory::kTemporary);
}

TEST_F(Attribution, WhatRecomputeHoldsAtItsEndIsActivationOfTheMicroBatchAround) {
  at::Tensor kept;
  {
    const DirectionScope backward(recorder_, Direction::kBackward, 2);
    const DirectionScope direction(recorder_, Direction::kRecompute);
    kept = block();
  }
  const PeakAllocation allocation = at_peak();
  EXPECT_EQ(allocation.category, MemoryCategory::kActivation);
  EXPECT_EQ(allocation.direction, Direction::kRecompute);
  EXPECT_EQ(allocation.micro_batch, 2);
}

TEST_F(Attribution, WhatBackwardMakesIsOfTheModuleWhoseForwardMadeTheNode) {
  const at::Tensor weight = at::ones({1 << 16}).requires_grad_();
  at::Tensor output;
  {
    const DirectionScope direction(recorder_, Direction::kForward, 0);
    const ModuleScope mlp(recorder_, "mlp");
    output = at::tanh(weight);
  }
  const at::Tensor gradient = at::ones({1 << 16});
  {
    const DirectionScope direction(recorder_, Direction::kBackward, 0);
    output.backward(gradient);
  }
  recorder_.end_phase();
  const PeakAllocation last = recorder_.peak_allocations().back();
  EXPECT_EQ(last.category, MemoryCategory::kWorkspace);  // the .grad outlives the phase
  EXPECT_EQ(last.module, "mlp");
  EXPECT_EQ(last.operator_name, "aten::tanh_backward");
  EXPECT_EQ(last.direction, Direction::kBackward);
  EXPECT_EQ(last.micro_batch, 0);
}

TEST_F(Attribution, WhatACollectiveUsedIsCommunicationUnlessItIsKept) {
  at::Tensor kept;
  {
    const DirectionScope direction(recorder_, Direction::kForward, 0);
    kept = at::empty({2 * kBlock}, at::kByte);
    const at::Tensor freed = block();
    recorder_.on_communicated(kept);
    recorder_.on_communicated(freed);
  }
  recorder_.end_phase();
  const auto categories = bytes_by_category(recorder_.peak_allocations());
  EXPECT_EQ(categories[MemoryCategory::kCommunication], kBlock);
  EXPECT_EQ(categories[MemoryCategory::kActivation], 2 * kBlock);
}

TEST_F(Attribution, WhatTheShardDeclaresIsWhatItSays) {
  const at::Tensor moment = block();
  const at::Tensor view = moment.narrow(0, 0, 100);
  recorder_.memory_lasts(
      view, {MemoryCategory::kOptimizerState, "optimizer", "layers.0.mlp.linear_fc1.weight"});
  const PeakAllocation allocation = at_peak();
  EXPECT_EQ(allocation.category, MemoryCategory::kOptimizerState);
  EXPECT_EQ(allocation.module, "optimizer");
  EXPECT_EQ(allocation.name, "layers.0.mlp.linear_fc1.weight");
  EXPECT_EQ(allocation.shape, (std::vector<int64_t>{kBlock}));
}

TEST_F(Attribution, WhatOutlivesItsPhaseAndIsNothingElseIsWorkspace) {
  const at::Tensor table = block();
  EXPECT_EQ(at_peak().category, MemoryCategory::kWorkspace);
}

TEST_F(Attribution, RequestedBytesAreThoseOfTheTensor) {
  const at::Tensor odd = at::empty({1000}, at::kFloat);
  EXPECT_EQ(at_peak(4096).requested_bytes, 4000);
}

TEST_F(Attribution, ListsWhatWasAliveWhenThePeakWasMadeAndNothingElse) {
  const at::Tensor kept = block();
  { const at::Tensor freed_before = at::empty({512}, at::kByte); }
  { const at::Tensor made_it = at::empty({8192}, at::kByte); }
  const at::Tensor after = at::empty({1024}, at::kByte);
  recorder_.end_phase();
  std::vector<int64_t> bytes;
  for (const PeakAllocation& allocation : recorder_.peak_allocations()) {
    bytes.push_back(allocation.bytes);
  }
  EXPECT_EQ(bytes, (std::vector<int64_t>{4096, 8192}));
}

TEST_F(Attribution, ModulesHoldWhatIsInsideThem) {
  std::vector<at::Tensor> kept;
  {
    const DirectionScope direction(recorder_, Direction::kForward, 0);
    const ModuleScope layer(recorder_, "layers.0");
    kept.push_back(at::empty({1024}, at::kByte));
    const ModuleScope mlp(recorder_, "mlp");
    kept.push_back(at::empty({2048}, at::kByte));
  }
  const int64_t before = memory_->current().allocated_bytes;
  recorder_.end_phase();
  estimator::RankProfile profile;
  profile.micro_batches = {.total = 1, .executed = 1};
  recorder_.finish(profile);
  ASSERT_EQ(profile.modules.size(), 2u);
  EXPECT_EQ(profile.modules[0].path, "layers.0");
  EXPECT_EQ(profile.modules[0].activation_bytes_at_peak, 1024 + 2048);
  EXPECT_EQ(profile.modules[0].forward_peak_bytes, before);
  EXPECT_EQ(profile.modules[0].backward_peak_bytes, 0);
  EXPECT_EQ(profile.modules[1].path, "layers.0.mlp");
  EXPECT_EQ(profile.modules[1].activation_bytes_at_peak, 2048);
}

TEST(AttributionOff, FollowsNoMemory) {
  const auto memory = make_memory_reader(estimator::DeviceKind::kCpu);
  Recorder recorder({.memory = *memory, .attribute_memory = false});
  recorder.begin_phase("build_model");
  EXPECT_FALSE(c10::memoryProfilingEnabled());
  const at::Tensor tensor = block();
  recorder.end_phase();
  EXPECT_TRUE(recorder.peak_allocations().empty());
}

}  // namespace
}  // namespace sim
