#include "sim/recording/recorder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/sim/recording/recorded_run.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::DirectionScope;
using estimator::ModuleScope;

class RecorderTest : public testing::Test {
 protected:
  std::unique_ptr<MemoryReader> memory_ = make_memory_reader(estimator::DeviceKind::kCpu);
  Recorder recorder_{{.memory = *memory_}};

  estimator::RankProfile finished() const {
    estimator::RankProfile profile;
    profile.micro_batches = {.total = 1, .executed = 1};
    recorder_.finish(profile);
    return profile;
  }
};

TEST_F(RecorderTest, PhaseTellsMemoryBeforeAfterAndAtItsPeak) {
  const at::Tensor before = at::empty({1000}, at::kByte);  // 1024
  const int64_t start = memory_->current().allocated_bytes;
  recorder_.begin_phase("build_model");
  const at::Tensor kept = at::empty({100}, at::kByte);  // 512
  { const at::Tensor freed = at::empty({2048}, at::kByte); }
  recorder_.end_phase();
  const auto phase = finished().phases.at(0);
  EXPECT_EQ(phase.name, "build_model");
  EXPECT_EQ(phase.before.allocated_bytes, start);
  EXPECT_EQ(phase.after.allocated_bytes, start + 512);
  EXPECT_EQ(phase.peak.allocated_bytes, start + 512 + 2048);
  EXPECT_EQ(phase.peak.reserved_bytes, start + 512 + 2048);
  EXPECT_GT(phase.seconds, 0);
}

TEST_F(RecorderTest, TimeWhileTheClockIsStoppedIsNotOfThePhase) {
  using namespace std::chrono_literals;
  recorder_.begin_phase("build_model");
  recorder_.stop_clock();
  std::this_thread::sleep_for(200ms);
  recorder_.continue_clock();
  recorder_.end_phase();
  EXPECT_LT(finished().phases.at(0).seconds, 0.1);
}

TEST_F(RecorderTest, PeakIsOfThePhaseThatReachesHighest) {
  recorder_.begin_phase("iteration_0.forward_backward");
  { const at::Tensor larger = at::empty({4096}, at::kByte); }
  recorder_.end_phase();
  recorder_.begin_phase("iteration_0.optimizer_step");
  { const at::Tensor smaller = at::empty({2048}, at::kByte); }
  recorder_.end_phase();
  const auto profile = finished();
  EXPECT_EQ(profile.peak.phase, "iteration_0.forward_backward");
  EXPECT_EQ(profile.peak.allocated_bytes, profile.phases[0].peak.allocated_bytes);
}

TEST_F(RecorderTest, OfEqualPeaksTheLastIsNamed) {
  for (const char* phase : {"iteration_0.forward_backward", "iteration_1.forward_backward"}) {
    recorder_.begin_phase(phase);
    { const at::Tensor tensor = at::empty({4096}, at::kByte); }
    recorder_.end_phase();
  }
  EXPECT_EQ(finished().peak.phase, "iteration_1.forward_backward");
}

TEST_F(RecorderTest, PeakNamesTheModuleAndOperatorThatAllocated) {
  const at::Tensor input = at::ones({1024});
  recorder_.begin_phase(kForwardBackward);
  recorder_.start_recording();
  {
    const ModuleScope layer(recorder_, "layers.3");
    const ModuleScope mlp(recorder_, "mlp");
    const at::Tensor kept = at::mul(input, input);
    const ModuleScope activation(recorder_, "activation");
    at::tanh(kept);
  }
  recorder_.stop_recording();
  recorder_.end_phase();
  const auto peak = finished().peak;
  EXPECT_EQ(peak.phase, kForwardBackward);
  EXPECT_EQ(peak.module, "layers.3.mlp.activation");
  EXPECT_EQ(peak.operator_name, "aten::tanh");
}

TEST_F(RecorderTest, PeakIsOfTheOperatorRatherThanOfTheAllocationItCalls) {
  recorder_.begin_phase(kForwardBackward);
  recorder_.start_recording();
  at::zeros({1 << 16});  // calls aten::empty, then aten::zero_
  recorder_.stop_recording();
  recorder_.end_phase();
  EXPECT_EQ(finished().peak.operator_name, "aten::zeros");
}

TEST_F(RecorderTest, PeakInBackwardIsOfTheModuleWhoseNodeRan) {
  const at::Tensor weight = at::ones({1 << 16}).requires_grad_();
  recorder_.begin_phase(kForwardBackward);
  recorder_.start_recording();
  at::Tensor output;
  {
    const ModuleScope mlp(recorder_, "mlp");
    output = at::tanh(weight);
  }
  const at::Tensor gradient = at::ones({1 << 16});
  output.backward(gradient);
  recorder_.stop_recording();
  recorder_.end_phase();
  EXPECT_EQ(finished().peak.module, "mlp");
  EXPECT_EQ(finished().peak.operator_name, "aten::tanh_backward");
}

TEST_F(RecorderTest, ActivationsAreWhatTheLastForwardKeeps) {
  std::vector<at::Tensor> kept;
  const auto forward = [&](int64_t micro_batch, int64_t bytes) {
    {
      const DirectionScope direction(recorder_, Direction::kForward);
      kept.push_back(at::empty({bytes}, at::kByte));
      const at::Tensor freed = at::empty({4096}, at::kByte);
    }
    recorder_.forward_finished(micro_batch);
  };
  forward(0, 8192);  // the first one may hold first-time workspaces
  forward(1, 1024);
  EXPECT_EQ(finished().micro_batches.activation_bytes, 1024);
}

// As a pipeline stage frees what it sent and the gradient that it received.
TEST_F(RecorderTest, ActivationsAreNotFewerForOlderMemoryThatTheForwardFrees) {
  at::Tensor older = at::empty({8192}, at::kByte);
  at::Tensor kept;
  {
    const DirectionScope direction(recorder_, Direction::kForward);
    kept = at::empty({1024}, at::kByte);
    older.reset();
  }
  recorder_.forward_finished(0);
  EXPECT_EQ(finished().micro_batches.activation_bytes, 1024);
}

TEST_F(RecorderTest, MicroBatchesAreInFlightFromForwardToBackward) {
  recorder_.forward_finished(0);
  recorder_.forward_finished(1);
  recorder_.backward_finished(0);
  recorder_.forward_finished(2);
  recorder_.backward_finished(1);
  recorder_.backward_finished(2);
  recorder_.forward_finished(0);  // the next iteration
  EXPECT_EQ(finished().micro_batches.most_in_flight, 2);
}

TEST_F(RecorderTest, MicroBatchesOutOfOrderAreABrokenPromise) {
  EXPECT_THROW(recorder_.backward_finished(0), std::logic_error);
  recorder_.forward_finished(0);
  EXPECT_THROW(recorder_.forward_finished(0), std::logic_error);
}

TEST_F(RecorderTest, MisuseIsABrokenPromise) {
  EXPECT_THROW(recorder_.end_phase(), std::logic_error);
  EXPECT_THROW(recorder_.stop_recording(), std::logic_error);
  EXPECT_THROW(recorder_.leave_module(), std::logic_error);
  recorder_.begin_phase("build_model");
  EXPECT_EQ(recorder_.running_phase(), "build_model");
  EXPECT_THROW(recorder_.begin_phase("build_optimizer"), std::logic_error);
  EXPECT_THROW(finished(), std::logic_error);
}

TEST(Recorder, WorkOfAMicroBatchIsScaledToThePlanAndTheRestIsNot) {
  const RecordedRun run{.micro_batches = {.total = 64, .executed = 2}};
  const at::Tensor tensor = at::ones({8});
  const auto profile = run.of([&](Recorder& recorder) {
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      const DirectionScope direction(recorder, Direction::kForward);
      at::tanh(tensor);
      at::tanh(tensor);
      recorder.on_collective({});
    }
    const DirectionScope direction(recorder, Direction::kReduceGradients);
    at::mul(tensor, 2);
    recorder.on_collective({});
  });
  EXPECT_EQ(only(profile, "aten::tanh").executed_count, 4);
  EXPECT_EQ(only(profile, "aten::tanh").count, 128);
  EXPECT_EQ(only(profile, "aten::mul").count, 1);
  ASSERT_EQ(profile.collectives.size(), 2u);
  EXPECT_EQ(profile.collectives[0].executed_count, 2);
  EXPECT_EQ(profile.collectives[0].count, 64);
  EXPECT_EQ(profile.collectives[1].count, 1);
}

TEST(Recorder, OneRecorderAfterAnotherStartsFromNothing) {
  const at::Tensor tensor = at::ones({8});
  const auto run_once = [&](Recorder&) { at::tanh(tensor); };
  EXPECT_EQ(only(RecordedRun().of(run_once), "aten::tanh").executed_count, 1);
  EXPECT_EQ(only(RecordedRun().of(run_once), "aten::tanh").executed_count, 1);
}

}  // namespace
}  // namespace sim
