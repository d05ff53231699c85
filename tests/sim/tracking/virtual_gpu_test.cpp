// The recorder on CUDA tensors: PyTorch's own allocator, and backward in autograd's thread.
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "sim/recording/recorder.h"
#include "tests/sim/virtual_gpu/torch/torch_process.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::DirectionScope;
using estimator::ModuleScope;

constexpr int64_t kSequence = 512, kHidden = 256, kHeads = 4, kMlp = 1024;

at::TensorOptions on_gpu() { return at::TensorOptions().device(at::kCUDA).dtype(at::kBFloat16); }
at::Tensor parameter(at::IntArrayRef sizes) { return at::empty(sizes, on_gpu()).requires_grad_(); }

struct Layer {
  at::Tensor norm = parameter({kHidden});
  at::Tensor qkv = parameter({3 * kHidden, kHidden});
  at::Tensor up = parameter({kMlp, kHidden});
  at::Tensor down = parameter({kHidden, kMlp});

  at::Tensor forward(Recorder& recorder, const at::Tensor& input) const {
    const ModuleScope layer(recorder, "layers.0");
    const at::Tensor normed = [&] {
      const ModuleScope scope(recorder, "input_layernorm");
      return at::rms_norm(input, {kHidden}, norm, 1e-5);
    }();
    const at::Tensor attended = [&] {
      const ModuleScope scope(recorder, "self_attention");
      const auto heads = [](const at::Tensor& tensor) {
        return tensor.view({1, kSequence, kHeads, kHidden / kHeads}).transpose(1, 2);
      };
      const auto parts = at::linear(normed, qkv).chunk(3, -1);
      return at::scaled_dot_product_attention(
                 heads(parts[0]), heads(parts[1]), heads(parts[2]), {}, 0.0, true)
          .transpose(1, 2)
          .reshape({kSequence, kHidden});
    }();
    const at::Tensor sum = input.add(attended);
    const ModuleScope scope(recorder, "mlp");
    return sum.add(at::linear(at::silu(at::linear(sum, up)), down));
  }
};

/// Two iterations of one layer; the second is recorded.
estimator::RankProfile profile_of_a_layer() {
  const auto memory = make_memory_reader(estimator::DeviceKind::kVirtual);
  Recorder recorder({.memory = *memory});
  recorder.begin_phase("build_model");
  const Layer layer;
  const at::Tensor input = at::empty({kSequence, kHidden}, on_gpu());
  recorder.end_phase();
  for (const bool recorded : {false, true}) {
    recorder.begin_phase(recorded ? "iteration_1.forward_backward"
                                  : "iteration_0.forward_backward");
    if (recorded) recorder.start_recording();
    at::Tensor loss;
    {
      const DirectionScope direction(recorder, Direction::kForward);
      loss = layer.forward(recorder, input).sum();
    }
    recorder.forward_finished(0);
    {
      const DirectionScope direction(recorder, Direction::kBackward);
      torch::autograd::backward({loss}, {});
    }
    recorder.backward_finished(0);
    if (recorded) recorder.stop_recording();
    recorder.end_phase();
  }
  estimator::RankProfile profile;
  profile.micro_batches = {.total = 1, .executed = 1};
  recorder.finish(profile);
  return profile;
}

using Place = std::tuple<std::string, Direction, std::string>;

std::map<Place, int64_t> operators_by_place(const estimator::RankProfile& profile) {
  std::map<Place, int64_t> counts;
  for (const auto& record : profile.operators) {
    counts[{record.name, record.direction, record.module_kind}] += record.executed_count;
  }
  return counts;
}

TEST(VirtualGpuTracking, BackwardInAutogradsThreadIsCountedForItsModule) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    const auto counts = operators_by_place(profile_of_a_layer());
    const auto count = [&](const char* name, Direction direction, const char* kind) {
      const auto found = counts.find({name, direction, kind});
      return found == counts.end() ? 0 : found->second;
    };
    const std::string flash = "aten::_scaled_dot_product_flash_attention";
    EXPECT_EQ(count("aten::mm", Direction::kForward, "attention"), 1);
    EXPECT_EQ(count("aten::mm", Direction::kForward, "mlp"), 2);
    EXPECT_EQ(count("aten::mm", Direction::kBackward, "attention"), 2);
    EXPECT_EQ(count("aten::mm", Direction::kBackward, "mlp"), 4);
    EXPECT_EQ(count(flash.c_str(), Direction::kForward, "attention"), 1);
    EXPECT_EQ(count((flash + "_backward").c_str(), Direction::kBackward, "attention"), 1);
    EXPECT_EQ(count("aten::silu_backward", Direction::kBackward, "mlp"), 1);
  });
}

TEST(VirtualGpuTracking, FlopsAreThoseOfTheProductsThatCublasWasGiven) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    double flops = 0;
    for (const auto& record : profile_of_a_layer().operators) {
      if (record.name == "aten::mm") flops += record.flops * static_cast<double>(record.count);
    }
    double given = 0;
    for (const auto& [shape, count] : virtual_gpu::gemms_by_shape()) {
      const auto [m, n, k, batch] = shape;
      given += 2.0 * static_cast<double>(m * n * k * batch * static_cast<int64_t>(count));
    }
    EXPECT_EQ(flops, given / 2);  // one iteration of two was recorded
    EXPECT_EQ(flops, 3 * 2.0 * kSequence * kHidden * (3 * kHidden + 2 * kMlp));
  });
}

TEST(VirtualGpuTracking, PhasesReadPyTorchsAllocator) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    const auto phases = profile_of_a_layer().phases;
    const int64_t elements = kHidden + 3 * kHidden * kHidden + 2 * kMlp * kHidden +
                             kSequence * kHidden;  // all multiples of 512 bytes
    EXPECT_EQ(phases.at(0).before.allocated_bytes, 0);
    EXPECT_EQ(phases.at(0).after.allocated_bytes, 2 * elements);
    EXPECT_GT(phases.at(0).after.reserved_bytes, phases.at(0).after.allocated_bytes);
    EXPECT_EQ(phases.at(2).peak.reserved_bytes, virtual_gpu::reserved_bytes());
  });
}

TEST(VirtualGpuTracking, TheTrackersPeakIsTheAllocatorsToTheByte) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    const auto memory = make_memory_reader(estimator::DeviceKind::kVirtual);
    const auto tracker = std::make_shared<RunTracker>(RunTracker::Options{});
    const c10::DebugInfoGuard carried(c10::DebugInfoKind::PROFILER_STATE, tracker);
    const at::Tensor weight = parameter({1024, 1024});
    memory->reset_peak();
    tracker->begin_phase(0, Direction::kForward);
    torch::autograd::backward({at::silu(at::linear(weight, weight)).sum()}, {});
    EXPECT_EQ(tracker->ended().memory().log().peak_bytes(), memory->peak().allocated_bytes);
    EXPECT_GT(memory->peak().allocated_bytes, 3 * 1024 * 1024 * 2);
  });
}

TEST(VirtualGpuTracking, IsReadWhileAnotherThreadAllocates) {
  RunTracker tracker(RunTracker::Options{});
  tracker.begin_phase(0, Direction::kForward);
  constexpr int64_t kBlocks = 20'000, kBytes = 512;
  std::thread other([&] {
    for (int64_t i = 1; i <= kBlocks; ++i) {
      tracker.block_made(static_cast<uint64_t>(i * kBytes), kBytes, {i * kBytes, i * kBytes}, {});
    }
  });
  const auto held = [](const TrackedRun& run) {
    int64_t bytes = 0;
    for (const Allocation* block : run.memory().log().at_peak()) bytes += block->bytes;
    return bytes;
  };
  int64_t bytes = 0;
  while (bytes < kBlocks * kBytes) {
    const int64_t before = bytes;
    bytes = tracker.locked(held);
    ASSERT_GE(bytes, before);
  }
  other.join();
}

TEST(VirtualGpuTracking, PeakInAutogradsThreadHasItsModule) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    const auto peak = profile_of_a_layer().peak;
    EXPECT_EQ(peak.phase, "iteration_1.forward_backward");
    EXPECT_EQ(peak.module.rfind("layers.0", 0), 0u) << peak.module;
    EXPECT_NE(peak.operator_name, "");
  });
}

TEST(VirtualGpuTracking, WhatIsAskedForIsToldApartFromTheBlock) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    const auto memory = make_memory_reader(estimator::DeviceKind::kVirtual);
    Recorder recorder({.memory = *memory});
    recorder.begin_phase("build_model");
    const at::Tensor whole = at::empty({11 << 20}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
    recorder.end_phase();
    // A segment of 12 MiB, of which 1 MiB is too little to split off.
    const auto allocations = recorder.peak_allocations();
    ASSERT_EQ(allocations.size(), 1u);
    EXPECT_EQ(allocations[0].bytes, 12 << 20);
    EXPECT_EQ(allocations[0].requested_bytes, 11 << 20);
  });
}

TEST(VirtualGpuTracking, WorkspacesOfCublasAreOfCublas) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    const auto memory = make_memory_reader(estimator::DeviceKind::kVirtual);
    Recorder recorder({.memory = *memory});
    recorder.begin_phase("iteration_0.forward_backward");
    const at::Tensor weight = parameter({1024, 1024});
    torch::autograd::backward({at::silu(at::linear(weight, weight)).sum()}, {});
    recorder.end_phase();
    int64_t workspaces = 0;
    for (const auto& allocation : recorder.peak_allocations()) {
      if (allocation.module != "cublas") continue;
      ++workspaces;
      EXPECT_EQ(allocation.category, estimator::MemoryCategory::kWorkspace);
      EXPECT_EQ(allocation.bytes, 32 << 20);  // capability 9.0
      EXPECT_EQ(allocation.operator_name, "aten::mm");
      EXPECT_EQ(allocation.shape, std::nullopt);
    }
    EXPECT_EQ(workspaces, 2);  // one for each thread
  });
}

TEST(VirtualGpuTracking, WorkOnTheHostIsNotCounted) {
  virtual_gpu::in_torch_process(virtual_gpu::h100(), [] {
    const auto memory = make_memory_reader(estimator::DeviceKind::kVirtual);
    Recorder recorder({.memory = *memory});
    recorder.begin_phase("iteration_1.forward_backward");
    recorder.start_recording();
    at::ones({8}).add_(1);
    at::ones({16}, on_gpu());
    recorder.stop_recording();
    recorder.end_phase();
    estimator::RankProfile profile;
    profile.micro_batches = {.total = 1, .executed = 1};
    recorder.finish(profile);
    ASSERT_EQ(profile.operators.size(), 1u);
    EXPECT_EQ(profile.operators[0].name, "aten::fill_");
    EXPECT_EQ(profile.operators[0].bytes, 16 * 2);
  });
}

}  // namespace
}  // namespace sim
