// What is said of a program's memory: every byte of its peak, by category, module and operator.

#include <algorithm>
#include <numeric>

#include "estimator/base/units.h"
#include "estimator/profile/peak_snapshot.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using estimator::MemoryCategory;
using estimator::PeakAllocation;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

class ExecMemory : public ExecProgram {
 protected:
  estimator::PeakSnapshot snapshot(const std::string& file) const {
    return estimator::read_peak_snapshot(estimator::read_file(path(file)), path(file));
  }

  /// Rank 9 of 64, with its snapshot.
  ProgramResult run_on_rank_9(const std::string& program, std::vector<std::string> flags = {}) {
    flags.insert(flags.end(),
                 {"--world-size", "64", "--rank", "9", "--peak-snapshot", path("peak.jsonl")});
    ProgramResult result = run_program(program, flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result;
  }

  estimator::PeakSnapshot snapshot_of(const std::string& program) {
    run_on_rank_9(program);
    return snapshot("peak.jsonl");
  }

  /// An estimate from the profile of rank 9 begins with the verdict that the program ended with.
  void expect_verdict_of_an_estimate(const ProgramResult& exec) {
    const ProgramResult estimate = run({"estimate", "--profiles", path("out")});
    const std::string first = estimate.output.substr(0, estimate.output.find('\n') + 1);
    EXPECT_THAT(first, testing::StartsWith("fits: rank 9 needs "));
    EXPECT_THAT(exec.output, HasSubstr(first));
    EXPECT_EQ(exec.exit_code, estimate.exit_code);
  }

  static int64_t bytes_of(const estimator::PeakSnapshot& snapshot, MemoryCategory category) {
    const auto& all = snapshot.allocations;
    return std::accumulate(all.begin(), all.end(), int64_t{0}, [&](int64_t sum, const auto& one) {
      return one.category == category ? sum + one.bytes : sum;
    });
  }

  static void expect_parameters_and_allocator(const estimator::RankProfile& told,
                                              const std::string& printed_by_torch,
                                              int64_t parameters);
};

/// Of plain.py, with `parameters` numbers.
void ExecMemory::expect_parameters_and_allocator(const estimator::RankProfile& told,
                                                 const std::string& printed_by_torch,
                                                 int64_t parameters) {
  EXPECT_EQ(told.parameters.count, parameters);
  EXPECT_EQ(told.parameters.bytes, 4 * parameters);
  ASSERT_EQ(told.parameters.tensors.size(), 4u);
  EXPECT_EQ(told.parameters.tensors[0].name, "0.weight");
  EXPECT_THAT(told.parameters.tensors[0].shape, testing::ElementsAre(2048, 512));
  EXPECT_EQ(told.parameters.tensors[0].dtype, "Float");
  EXPECT_EQ(told.allocator.requested_peak_bytes, printed(printed_by_torch, "requested"));
  EXPECT_EQ(told.allocator.segments_peak, printed(printed_by_torch, "segments"));
  EXPECT_FALSE(told.model_state) << "what nobody has counted is left out";
  EXPECT_THAT(
      told.modules,
      Contains(AllOf(Field(&estimator::ModuleRecord::path, "0"),
                     Field(&estimator::ModuleRecord::parameter_bytes, 4 * (512 * 2048 + 2048)))));
}

TEST_F(ExecMemory, IsAsTorchTellsItAndEveryByteOfThePeakHasItsAllocation) {
  const ProgramResult result = run_program("plain.py", {"--peak-snapshot", path("peak.jsonl")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto peak = snapshot("peak.jsonl");  // refused when the lines do not add up
  const auto told = profile(0);
  EXPECT_EQ(peak.header.peak.allocated_bytes, printed(result.output, "allocated"));
  EXPECT_EQ(told.peak.allocated_bytes, printed(result.output, "allocated"));
  EXPECT_EQ(told.peak.reserved_bytes, printed(result.output, "reserved"));
  EXPECT_EQ(told.program->optimizer_steps, 3);
  EXPECT_EQ(told.phases.front().name, "build_model");
  EXPECT_EQ(told.phases.back().name, "end");
  // Two fp32 layers of 512 x 2048 with their biases, all multiples of a block of 512 bytes:
  // weights, gradients, two moments and a step counter each.
  const int64_t parameters = 2 * 512 * 2048 + 2048 + 512;
  EXPECT_EQ(bytes_of(peak, MemoryCategory::kParameter), 4 * parameters);
  EXPECT_EQ(bytes_of(peak, MemoryCategory::kGradient), 4 * parameters);
  EXPECT_EQ(bytes_of(peak, MemoryCategory::kOptimizerState), 8 * parameters);
  EXPECT_EQ(peak.header.peak.phase, "iteration_2.optimizer_step");
  expect_parameters_and_allocator(told, result.output, parameters);
}

TEST_F(ExecMemory, OfAShardedModelIsToldByModuleOperatorAndParameterAndItsVerdictIsAnEstimates) {
  const ProgramResult result = run_on_rank_9("fsdp2.py", {"--gpu", "rtx4090"});
  const auto peak = snapshot("peak.jsonl").allocations;
  EXPECT_THAT(peak,
              Contains(AllOf(Field(&PeakAllocation::category, MemoryCategory::kParameter),
                             Field(&PeakAllocation::name, "0.weight"),
                             Field(&PeakAllocation::module, "0"))));
  EXPECT_THAT(peak,
              Contains(AllOf(Field(&PeakAllocation::category, MemoryCategory::kOptimizerState),
                             Field(&PeakAllocation::name, "2.weight"))));
  EXPECT_THAT(peak,
              Contains(AllOf(Field(&PeakAllocation::category, MemoryCategory::kParameter),
                             Field(&PeakAllocation::module, "fsdp"),
                             Field(&PeakAllocation::requested_bytes, 4 * 64 * 256))))
      << "gathered";
  EXPECT_EQ(profile(9).peak.categories->sum(), profile(9).peak.allocated_bytes);
  for (const PeakAllocation& block : peak) {
    EXPECT_THAT(block.operator_name, AnyOf("", HasSubstr("::"))) << "a profiler's range";
  }
  expect_verdict_of_an_estimate(result);
}

TEST_F(ExecMemory, OfOtherLibrariesCountsAsMuchAsIsThereWhenMostIsInUse) {
  const ProgramResult stopped = run_program("raw_memory.py", {"--steps", "1"});
  ASSERT_EQ(stopped.exit_code, 0) << stopped.error;
  EXPECT_EQ(profile(0).program->other_libraries_bytes, estimator::kGiB);
  EXPECT_THAT(stopped.output, HasSubstr(" + 1.00 GiB other libraries (simulated)"));
  EXPECT_EQ(run_program("raw_memory.py", {}).exit_code, 0);
  EXPECT_EQ(profile(0).program->other_libraries_bytes, 5 * estimator::kGiB);
}

// 64 x 256 twice, with biases: one bucket of DistributedDataParallel, made anew in iteration 1,
// when PyTorch's watchdog has released the first one.
TEST_F(ExecMemory, OfAReducersBucketsIsCommunication) {
  EXPECT_THAT(snapshot_of("ddp.py").allocations,
              Contains(AllOf(Field(&PeakAllocation::category, MemoryCategory::kCommunication),
                             Field(&PeakAllocation::requested_bytes, 4 * (2 * 64 * 256 + 256 + 64)),
                             Field(&PeakAllocation::phase, "iteration_1.forward_backward"))));
  EXPECT_EQ(bytes_of(snapshot("peak.jsonl"), MemoryCategory::kCommunication), 259 * 512)
      << "one of them, as a whole number of blocks";
}

// As those of diffusion models: 4 MiB each of the weights, of the module and of the list. A forward
// kept both copies, and no backward needs them.
TEST_F(ExecMemory, OfAveragedWeightsIsNoActivation) {
  ASSERT_EQ(run_program("averages_weights.py", {"--steps", "2"}).exit_code, 0);
  const auto told = profile(0);
  const auto& categories = *told.peak.categories;
  EXPECT_EQ(categories[MemoryCategory::kParameter], 4 * estimator::kMiB);
  EXPECT_GE(categories[MemoryCategory::kWorkspace], 8 * estimator::kMiB);
  EXPECT_LT(categories[MemoryCategory::kActivation], estimator::kMiB);
}

// PyTorch Lightning computes the loss inside the step.
TEST_F(ExecMemory, OfGradientsThatAClosureMakesIsTheirs) {
  ASSERT_EQ(run_program("closures.py", {"--steps", "2"}).exit_code, 0);
  EXPECT_GE((*profile(0).peak.categories)[estimator::MemoryCategory::kGradient], 4 * 64 * 64);
}

// Four units of 4 MiB, all whole when the backward begins.
TEST_F(ExecMemory, OfFlatGatheredParametersIsNoActivation) {
  const auto peak = snapshot_of("fsdp1.py");
  EXPECT_GE(bytes_of(peak, MemoryCategory::kCommunication), 4 * (int64_t{4} << 20));
  EXPECT_LT(bytes_of(peak, MemoryCategory::kActivation), int64_t{1} << 20);
}

TEST_F(ExecMemory, OfAnOptimizerInsideAnotherIsOfTheOutersStep) {
  const ProgramResult result = run_program("nested_optimizers.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(0).peak.phase, "iteration_1.optimizer_step");
  EXPECT_EQ(profile(0).peak.allocated_bytes, printed(result.output, "allocated"));
}

TEST_F(ExecMemory, ThatRunsOutIsNotJudgedIfTheProgramGoesOn) {
  const ProgramResult result = run_program("retries.py", {});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("fits: rank 0 needs 2."),
                    HasSubstr("2 of its requests for memory were refused, and it went on")));
  EXPECT_EQ(profile(0).program->optimizer_steps, 3);
  EXPECT_FALSE(profile(0).out_of_memory);
}

TEST_F(ExecMemory, ThatTheProgramDoesNotAllowItselfIsNotTheDevices) {
  const ProgramResult result = run_program("retries.py", {}, {"limit"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("rank 0 ran out of the memory that the program allows itself"),
                    HasSubstr("set_per_process_memory_fraction")));
}

TEST_F(ExecMemory, ThatRunsOutInTheFirstStepIsToldThere) {
  const ProgramResult result = run_program("too_large_to_step.py", {});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output,
              HasSubstr("does not fit: rank 0 ran out of 79.19 GiB in iteration_0.optimizer_step: "
                        "1.00 GiB were asked for, 0."));
  const auto told = profile(0);
  EXPECT_EQ(told.program->optimizer_steps, 0);
  // 30 weights of 1 GiB, their gradients, and as many moments as there was room for.
  constexpr int64_t kGib = int64_t{1} << 30;
  const auto& categories = *told.peak.categories;
  EXPECT_EQ(categories[MemoryCategory::kParameter], 30 * kGib);
  EXPECT_EQ(categories[MemoryCategory::kGradient], 30 * kGib);
  EXPECT_GE(categories[MemoryCategory::kOptimizerState], 16 * kGib);
  EXPECT_LT(categories[MemoryCategory::kWorkspace], kGib);
}

// At the peak the gradient's rows and their indices are there.
TEST_F(ExecMemory, HasThePartsOfASparseGradient) {
  const ProgramResult result =
      run_program("without_storage.py", {"--peak-snapshot", path("peak.jsonl")});
  ASSERT_EQ(result.exit_code, 0) << result.output << result.error;
  EXPECT_EQ(bytes_of(snapshot("peak.jsonl"), MemoryCategory::kGradient), 4096 * (128 * 4 + 8));
}

// A parameter that no module has is a copy of the weights for the optimizer.
TEST_F(ExecMemory, HasTheShardsOfAShardedTensor) {
  const ProgramResult result =
      run_program("without_storage.py", {"--peak-snapshot", path("peak.jsonl")}, {"sharded"});
  ASSERT_EQ(result.exit_code, 0) << result.output << result.error;
  EXPECT_EQ(bytes_of(snapshot("peak.jsonl"), MemoryCategory::kMasterWeight), 100'000 * 128 * 4);
}

TEST_F(ExecMemory, HasParametersThatTorchFuncWraps) {
  const ProgramResult result =
      run_program("without_storage.py", {"--peak-snapshot", path("peak.jsonl")}, {"func"});
  ASSERT_EQ(result.exit_code, 0) << result.output << result.error;
  EXPECT_EQ(bytes_of(snapshot("peak.jsonl"), MemoryCategory::kParameter), (128 + 1) * 128 * 4);
}

}  // namespace
}  // namespace sim
