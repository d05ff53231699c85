// The trace of a program's iteration, and the step time that is made of it.

#include <algorithm>
#include <map>
#include <string>

#include "estimator/base/fields.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using estimator::Trace;
using estimator::TraceEventKind;
using estimator::TraceWork;
using estimator::WorkKind;
using testing::HasSubstr;
using testing::Not;

class ExecTrace : public ExecProgram {
 protected:
  Trace trace(int64_t rank) const { return profile(rank).trace.value(); }

  static const TraceWork& work(const Trace& trace, std::size_t event) {
    return trace.works[static_cast<std::size_t>(trace.events.item[event])];
  }
  static TraceEventKind kind(const Trace& trace, std::size_t event) {
    return static_cast<TraceEventKind>(trace.events.kind[event]);
  }
  /// The events that are matrix products.
  static std::vector<std::size_t> products(const Trace& trace) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < trace.events.kind.size(); ++i) {
      if (kind(trace, i) == TraceEventKind::kLaunch && work(trace, i).kind == WorkKind::kProduct) {
        found.push_back(i);
      }
    }
    return found;
  }
  /// Of two_streams.py.
  static void expect_streams_and_what_they_wait_for(const Trace& whole);
  static void expect_time_with_what_runs_beside_other_work(const estimator::Json& time);
};

void ExecTrace::expect_streams_and_what_they_wait_for(const Trace& whole) {
  const auto& events = whole.events;
  EXPECT_EQ(whole.iteration, 1);
  const std::vector<std::size_t> all = products(whole);
  ASSERT_EQ(all.size(), 3u) << "beside, forward, and the weight's gradient";
  const std::size_t beside = all[0], forward = all[1], gradient = all[2];
  EXPECT_NE(events.stream[beside], events.stream[forward]);
  EXPECT_EQ(events.stream[gradient], events.stream[forward]);
  EXPECT_EQ(work(whole, beside).dtype, "BFloat16");
  EXPECT_EQ(work(whole, beside).operator_name, "aten::mm");
  EXPECT_EQ(work(whole, beside).flops, 2.0 * 8192 * 8192 * 8192);
  for (const std::size_t call : {forward, gradient - 1, gradient}) {
    EXPECT_EQ(events.issue[call], static_cast<int64_t>(estimator::HostIssue::kCall));
  }
  EXPECT_GT(events.operators[forward], 0);
  EXPECT_GT(events.operators[gradient - 1], 0) << "the copy that the operator begins with";
  EXPECT_EQ(events.operators[gradient], 0) << "no operator begins between the two";
  // The first stream waits for the second after the product that ran there.
  std::vector<int64_t> recorded, waited;
  for (std::size_t i = beside; i < events.kind.size(); ++i) {
    if (kind(whole, i) == TraceEventKind::kRecord && events.stream[i] == events.stream[beside]) {
      recorded.push_back(events.item[i]);
    }
    if (kind(whole, i) == TraceEventKind::kStreamWait &&
        events.stream[i] == events.stream[forward]) {
      waited.push_back(events.item[i]);
    }
  }
  EXPECT_THAT(recorded, testing::SizeIs(1));
  EXPECT_THAT(waited, testing::IsSupersetOf(recorded));
  EXPECT_EQ(kind(whole, 0), TraceEventKind::kHostWaitDevice)
      << "what follows a step belongs to the next iteration";
}

// The trace stops after the first optimizer and goes on with the next: records keep their order.
TEST_F(ExecTrace, OfSeveralOptimizersIsOne) {
  ASSERT_EQ(run_program("two_optimizers.py", {}).exit_code, 0);
  const Trace whole = trace(0);  // reading it checks the numbers of records
  std::map<estimator::Direction, int64_t> kernels;
  for (std::size_t i = 0; i < whole.events.kind.size(); ++i) {
    if (kind(whole, i) != TraceEventKind::kLaunch) continue;
    ++kernels[static_cast<estimator::Direction>(whole.events.direction[i])];
  }
  EXPECT_EQ(kernels[estimator::Direction::kOptimizerStep], 2);
  EXPECT_GE(whole.records, 4);
}

/// Megatron-LM's optimizers of dense weights and of experts gather their weights in between.
TEST_F(ExecTrace, OfSeveralOptimizersHasWhatRunsBetweenTheirStepsOnce) {
  for (const char* steps : {"2", "3"}) {
    ASSERT_EQ(run_program("two_optimizers.py", {"--steps", steps}).exit_code, 0);
    const Trace whole = trace(0);
    EXPECT_EQ(whole.iteration, 1);
    int64_t additions = 0;
    for (const estimator::TraceLaunch& launch : whole.launches()) {
      const estimator::TraceWork& work = whole.work_of(launch);
      if (work.operator_name == "aten::add_") ++additions;
    }
    EXPECT_EQ(additions, 2) << "one behind the step of each, with --steps " << steps;
  }
}

/// The generator and the discriminator have one product each for every forward, and for every
/// gradient but that of the noise.
TEST_F(ExecTrace, OfOptimizersThatStepInTurnHasTheTurnsOfAll) {
  const ProgramResult result = run_program("turns.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(0).program->optimizer_steps, 3);
  constexpr std::size_t kForward = 1 + 2 + 1, kDiscriminator = 2, kGenerator = 1 + 1 + 1;
  EXPECT_EQ(products(trace(0)).size(), kForward + kDiscriminator + kGenerator);
  const auto time =
      estimator::Json::parse(run({"estimate", "--profiles", path("out"), "--json"}).output)
          .at("time");
  EXPECT_EQ(time.at("flops"), time.at("model_flops")) << "nothing runs again";
}

/// Each of two layers has a product forward and a gradient of its weight, the second one that of
/// its input, too. DeepSpeed's ZeRO-1 and ZeRO-2 step the groups of an optimizer one after the
/// other.
TEST_F(ExecTrace, OfGroupsThatAreSteppedOneAfterTheOtherIsThatOfTheWholeIteration) {
  for (const char* steps : {"2", "4", "0"}) {
    const ProgramResult result =
        run_program("stepped_groups.py", {"--world-size", "2", "--steps", steps});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const Trace whole = trace(0);
    EXPECT_EQ(whole.iteration, 1) << steps;
    EXPECT_EQ(products(whole).size(), 2u + 3u) << steps;
    std::map<estimator::Direction, int64_t> kernels;
    for (const estimator::TraceLaunch& launch : whole.launches()) {
      ++kernels[static_cast<estimator::Direction>(launch.direction)];
    }
    EXPECT_EQ(kernels[estimator::Direction::kOptimizerStep], 2 * 2)
        << "of each group the counters of steps, and the update";
  }
}

/// The iteration that was chosen last does not end: the one before is told, trace and calls.
TEST_F(ExecTrace, OfAnIterationThatDidNotEndIsNotTold) {
  const ProgramResult result = run_program("unfinished.py", {"--world-size", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(trace(0).iteration, 1);
  const estimator::RankProfile told = profile(0);
  EXPECT_EQ(told.program->recorded_iteration, 1);
  std::map<std::string, int64_t> calls;
  for (const estimator::CommunicatorRecord& communicator : told.program->communicators) {
    for (const auto& call : communicator.calls) calls[call.kind] += call.iteration_count;
  }
  EXPECT_EQ(calls["all_reduce"], 1);
  EXPECT_EQ(calls["broadcast"], 0);
}

/// Three equal products, of which two run at the same time: each fills the GPU, so that nothing is
/// won. The copy from the host runs beside them.
void ExecTrace::expect_time_with_what_runs_beside_other_work(const estimator::Json& time) {
  std::map<std::string, double> seconds;
  for (const auto& term : time.at("ranks").at(0).at("terms")) {
    seconds[term.at("name").get<std::string>()] = term.at("seconds").get<double>();
  }
  // At 656 TFLOP/s, which an H200 sustained of such products alone (estimator/data/power.json).
  constexpr double kProduct = 2.0 * 8192 * 8192 * 8192 / 656e12;
  const double iteration = time.at("iteration_seconds").get<double>();
  EXPECT_GT(iteration, 3 * kProduct);
  EXPECT_LT(iteration, 3.6 * kProduct);
  EXPECT_GT(seconds.at("matrix products"), 4.5 * kProduct);
  EXPECT_GT(seconds.at("copies to and from the host"), 0.3 * kProduct);
}

TEST_F(ExecTrace, HasStreamsWhatTheyWaitForATimeAndDrawings) {
  const std::string file = path("step.json");
  const ProgramResult shown = run_program(
      "two_streams.py", {"--trace", file, "--timeline", "--roofline", "--measured-step", "1"});
  ASSERT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_THAT(shown.output, HasSubstr("rank     0 stream   0 |"));
  EXPECT_THAT(shown.output, HasSubstr("what the step waits for"));
  EXPECT_THAT(shown.output, HasSubstr("1.00 s measured (given)"));
  expect_streams_and_what_they_wait_for(trace(0));
  const ProgramResult result = run({"estimate", "--profiles", path("out"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  expect_time_with_what_runs_beside_other_work(
      estimator::parse_json(result.output, "the estimate").at("time"));
  const auto drawn = estimator::parse_json(estimator::read_file(file), file);
  EXPECT_GT(drawn.at("traceEvents").size(), 10u);
}

TEST_F(ExecTrace, HasTheModelThatRunsInTheClosureOfAStep) {
  const ProgramResult result = run_program("closures.py", {"--steps", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, testing::Not(HasSubstr("step 2")));
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
  EXPECT_EQ(profile(0).phases.back().name, "iteration_1.optimizer_step");
  const Trace step = trace(0);
  double forward = 0;
  for (const estimator::TraceLaunch& launch : step.launches()) {
    const bool is_forward =
        launch.direction == static_cast<int64_t>(estimator::Direction::kForward);
    if (is_forward) forward += step.work_of(launch).flops;
  }
  EXPECT_EQ(forward, 2.0 * 8 * 64 * 64);
}

/// Each of eight layers of 1 MiB has an optimizer: their gradients never live together.
void expect_two_whole_steps(const ProgramResult& result, const estimator::RankProfile& profile) {
  EXPECT_THAT(result.output, Not(HasSubstr("step 2")));
  EXPECT_EQ(profile.program->optimizer_steps, 2);
  ASSERT_GE(profile.phases.size(), 2u);
  EXPECT_EQ(profile.phases.back().name, "iteration_1.optimizer_step");
  const estimator::PhaseRecord& backward = profile.phases.end()[-2];
  EXPECT_EQ(backward.name, "iteration_1.forward_backward");
  EXPECT_LT(backward.peak.allocated_bytes - backward.before.allocated_bytes, 4 << 20);
}

TEST_F(ExecTrace, OfStepsInsideABackwardHasTheWholeBackward) {
  const ProgramResult result = run_program("steps_in_backward.py", {"--steps", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  expect_two_whole_steps(result, profile(0));
  double flops = 0;
  const Trace step = trace(0);
  for (const estimator::TraceLaunch& launch : step.launches()) flops += step.work_of(launch).flops;
  // Forward, and both products of backward but that for the input of the first layer.
  EXPECT_EQ(flops, (8 * 3 - 1) * 2.0 * 4 * 512 * 512);
}

TEST_F(ExecTrace, OfStepsInsideTheBackwardOfANodeEndsWithTheOutermost) {
  const ProgramResult result = run_program("steps_in_backward.py", {"--steps", "2"}, {"reentrant"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  expect_two_whole_steps(result, profile(0));
}

TEST_F(ExecTrace, OfOneStepIsNone) {
  const ProgramResult result = run_program("two_streams.py", {}, {"once"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_FALSE(profile(0).trace.has_value());
  EXPECT_THAT(result.output, HasSubstr("no step time: rank 0 has no trace"));
  EXPECT_THAT(result.output, HasSubstr("--steps 2"));
}

// Two sequences of 64 tokens in each of two micro-batches, on eight ranks.
TEST_F(ExecTrace, TellsTheTokensOfAStep) {
  if (!has_package("transformers") || !has_package("accelerate")) GTEST_SKIP();
  const std::string file = path("estimate.json");
  const ProgramResult result =
      run(command("trainer.py", {"--world-size", "8", "--steps", "2", "--estimate", file}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto estimate = estimator::parse_json(estimator::read_file(file), file);
  EXPECT_EQ(estimate.at("throughput").at("tokens_per_step"), 8 * 2 * 2 * 64);
  EXPECT_EQ(estimate.at("throughput").at("tokens_source"), "computed");
}

// Its embedding has no backward, and its loss no labels. It joins no process group.
TEST_F(ExecTrace, TellsTheTokensOfAModelWhoseEmbeddingIsFrozen) {
  const ProgramResult result =
      run(command("frozen_embedding.py", {"--world-size", "4", "--steps", "2"}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              HasSubstr("for each GPU; 512 tokens a step (computed: 512 of rank 0 alone, by "
                        "the integer inputs of its model: it joined no process group)"));
  EXPECT_THAT(result.output,
              HasSubstr("\nthe program joined no process group: each of the 4 ranks trains alone"));
}

// As modded-nanogpt's: the number of each image of a batch is no token, and what DETR's loss is
// given is none either.
TEST_F(ExecTrace, TellsTheTokensOfSequencesOneBehindTheOther) {
  const ProgramResult flat = run(command("frozen_embedding.py", {"--steps", "2"}, {"flat"}));
  ASSERT_EQ(flat.exit_code, 0) << flat.error;
  EXPECT_THAT(flat.output, HasSubstr("512 tokens a step (computed: 512 of rank 0"));
  const ProgramResult images = run(command("frozen_embedding.py", {"--steps", "2"}, {"images"}));
  ASSERT_EQ(images.exit_code, 0) << images.error;
  EXPECT_THAT(images.output, HasSubstr("tokens/s are not known"));
}

// peft's prompt tuning.
TEST_F(ExecTrace, TellsTheTokensOfAModelOfWhichAPromptIsTrained) {
  const ProgramResult result = run(command("prompt.py", {"--steps", "2"}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("512 tokens a step (computed: 512 of rank 0"));
}

TEST_F(ExecTrace, IsTheSameInEveryRunAloneAndBesideOtherRanks) {
  ASSERT_EQ(run_program("fsdp2.py", {"--world-size", "64", "--rank", "63"}).exit_code, 0);
  const Trace alone = trace(63);
  const auto peak_alone = profile(63).peak;
  const ProgramResult result =
      run_program("fsdp2.py", {"--world-size", "64", "--ranks", "0,17,63", "--jobs", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto first = result.output.find("rank 0 of 64"), last = result.output.find("rank 63 of 64");
  EXPECT_LT(first, last);
  EXPECT_NE(last, std::string::npos);
  const Trace beside = trace(63);
  const auto forwards = [](const estimator::TraceRange& range) {
    return range.name == "FSDP::pre_forward";
  };
  EXPECT_GT(std::count_if(alone.ranges.begin(), alone.ranges.end(), forwards), 1);
  EXPECT_EQ(peak_alone.allocated_bytes, profile(63).peak.allocated_bytes);
  EXPECT_EQ(peak_alone.reserved_bytes, profile(63).peak.reserved_bytes);
  EXPECT_TRUE(estimator::to_json(alone) == estimator::to_json(beside));
  for (const TraceWork& described : alone.works) {
    EXPECT_NE(described.bytes_source, estimator::BytesSource::kNothing) << described.name;
  }
}

// Of others nobody knows what they cost.
TEST_F(ExecTrace, NamesThePythonThatHasAPrice) {
  ASSERT_EQ(run_program("python_ranges.py", {}).exit_code, 0);
  std::vector<std::string> names;
  for (const estimator::TraceRange& range : trace(0).ranges) names.push_back(range.name);
  EXPECT_THAT(names, testing::ElementsAre("_Linear", "_LinearBackward"));
}

// The activation by its rows, a block each; with 1024 elements of a buffer of 2 MiB; once; with the
// elements again, by a kernel that was told no length; and twice.
TEST_F(ExecTrace, PricesAKernelOfALibraryByTheTensorsThatItWasGiven) {
  const ProgramResult result = run_program("flat_buffer.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Trace whole = trace(0);
  std::map<std::string, int64_t> bytes;
  for (const TraceWork& described : whole.works) {
    if (described.bytes_source == estimator::BytesSource::kParameters) {
      bytes[described.name] = described.bytes;
    }
  }
  constexpr int64_t kActivation = 4096 * 1024 * 2;
  EXPECT_THAT(bytes,
              testing::ElementsAre(testing::Pair("loss_fwd", kActivation),
                                   testing::Pair("norm_fwd", kActivation + 1024 * 2),
                                   testing::Pair("rms_fwd", kActivation + 1024 * 2),
                                   testing::Pair("rope_fwd", kActivation),
                                   testing::Pair("softmax_bwd", 2 * kActivation + 1024 * 2)));
  EXPECT_THAT(result.output,
              HasSubstr("priced by the memory that the kernels were given: 5 launch"));
}

// Of 8 x 8 blocks of 128 tokens two documents of four blocks have 10 each in the causal half, and
// without documents there are 36; of two batches and four heads. A forward multiplies twice with
// 64 wide heads, a backward five times.
TEST_F(ExecTrace, CountsTheBlocksThatAMaskOfFlexAttentionLeaves) {
  const ProgramResult result = run_program("flex_attention.py", {"--steps", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Trace whole = trace(0);
  std::vector<double> blocks;
  std::vector<bool> are_bounds;
  for (std::size_t i = 0; i < whole.events.kind.size(); ++i) {
    if (kind(whole, i) != TraceEventKind::kLaunch) continue;
    const TraceWork& launched = work(whole, i);
    if (!launched.operator_name.starts_with("higher_order::flex_attention")) continue;
    const double products = launched.operator_name.ends_with("_backward") ? 5 : 2;
    blocks.push_back(launched.flops / (2.0 * 128 * 128 * 64 * products * 2 * 4));
    are_bounds.push_back(launched.has_unknown_lengths);
  }
  EXPECT_THAT(blocks, testing::ElementsAre(20, 20, 36, 36, 20, 20));
  EXPECT_THAT(are_bounds, testing::ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(result.output, HasSubstr("flex_attention with masks that are not known: 2 launches"));
  EXPECT_THAT(result.output, HasSubstr("\n  (at most: flex_attention with masks"));
}

// Inductor's coordinate descent compiles ten configurations of a kernel and more, to time them.
TEST_F(ExecTrace, TunesNoKernelForTimesThatAreAllTheSame) {
  const ProgramResult result = run_program("tunes.py", {});
  EXPECT_EQ(result.exit_code, 0) << result.error;
}

// 4 and 2 MiB, of which a kernel reads and writes the first, the second, and none.
TEST_F(ExecTrace, CountsTwiceWhatAKernelOfTheCompilerUpdates) {
  const ProgramResult result = run_program("updated_tensors.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Trace whole = trace(0);
  std::vector<int64_t> mebibytes;
  for (std::size_t i = 0; i < whole.events.kind.size(); ++i) {
    if (kind(whole, i) != TraceEventKind::kLaunch) continue;
    const TraceWork& launched = work(whole, i);
    if (launched.name.starts_with("triton_")) mebibytes.push_back(launched.bytes >> 20);
  }
  EXPECT_THAT(mebibytes, testing::ElementsAre(4 + 4 + 2, 4 + 2 + 2, 4 + 2));
}

TEST_F(ExecTrace, TellsThePlaceOfRandomNumbersFromTheLengthOfALoop) {
  const ProgramResult result = run_program("compiled_dropout.py", {"--steps", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  int64_t drawing = 0;
  for (const TraceWork& described : trace(0).works) {
    if (described.name.find("native_dropout") == described.name.npos) continue;
    ++drawing;
    EXPECT_THAT(described.shapes, testing::ElementsAre(testing::ElementsAre(1 << 20)));
  }
  EXPECT_GT(drawing, 0);
}

TEST_F(ExecTrace, PricesAKernelOfALibraryInAGraphByWhatItWasGivenAtItsCapture) {
  const ProgramResult result = run_program("graph_of_own_kernel.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  std::map<std::string, int64_t> bytes;
  for (const TraceWork& described : trace(0).works) bytes[described.name] = described.bytes;
  EXPECT_EQ(bytes["scale_alone"], 4 << 20);
  EXPECT_EQ(bytes["scale_in_graph"], 4 << 20);
}

// 31 tokens are rows of no matrix in memory; a vocabulary of 101 is.
TEST_F(ExecTrace, TellsHowWorksAreAskedFor) {
  const ProgramResult result = run_program("priced_works.py", {"--world-size", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Trace whole = trace(0);
  std::vector<bool> misaligned;
  for (const std::size_t event : products(whole)) {
    misaligned.push_back(work(whole, event).is_misaligned);
  }
  EXPECT_THAT(misaligned, testing::ElementsAre(false, false, false, true))
      << "forward, both gradients, and the vocabulary";
  std::map<std::string, int64_t> calls, bytes;
  for (std::size_t i = 0; i < whole.events.kind.size(); ++i) {
    if (kind(whole, i) != TraceEventKind::kLaunch) continue;
    const TraceWork& launched = work(whole, i);
    if (launched.kind == WorkKind::kCopy && launched.bytes >= 4 << 20) {
      const bool waits = kind(whole, i + 1) == TraceEventKind::kHostWaitStream;
      EXPECT_EQ(launched.is_pageable, launched.bytes == 4 << 20);
      EXPECT_EQ(waits, launched.is_pageable);
      ++calls["copy"];
    }
    if (launched.kind != WorkKind::kCollective) continue;
    ++calls[launched.name];
    bytes[launched.name] = launched.bytes;
  }
  EXPECT_EQ(calls["copy"], 2);
  EXPECT_EQ(calls["all_reduce"], 1) << "ten of one group";
  EXPECT_EQ(bytes["all_reduce"], 10 * 1024 * 2);
  EXPECT_EQ(calls["all_gather"], 1) << "a broadcast from each rank";
  EXPECT_EQ(bytes["all_gather"], (100 + 101 + 102 + 103) * 2);
  EXPECT_EQ(calls["broadcast"], 0);
}

// AdamW reads the gradient, and reads and writes the weight and two moments (and a counter of four
// bytes) for each of a million parameters; SGD has no moments, and one operator.
TEST_F(ExecTrace, HasTheUpdatesOfOptimizersOnTheCpu) {
  const ProgramResult result = run_program("optimizer_on_host.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Trace whole = trace(0);
  std::vector<std::pair<int64_t, estimator::HostIssue>> updates;
  for (std::size_t i = 0; i < whole.events.kind.size(); ++i) {
    if (kind(whole, i) != TraceEventKind::kHostUpdates) continue;
    updates.emplace_back(whole.events.item[i],
                         static_cast<estimator::HostIssue>(whole.events.issue[i]));
  }
  constexpr int64_t kParameters = 1 << 20, kAdam = 28 * kParameters + 8;
  using estimator::HostIssue;
  EXPECT_THAT(updates,
              testing::ElementsAre(std::pair(kAdam, HostIssue::kUnfusedUpdate),
                                   std::pair(kAdam, HostIssue::kFusedUpdate),
                                   std::pair(12 * kParameters, HostIssue::kFusedUpdate)));
  EXPECT_THAT(result.output, HasSubstr("\n  optimizer on the CPU                "));
}

/// FLOPs of attention, in both directions.
double attention_flops(const Trace& trace) {
  double flops = 0;
  for (const estimator::TraceLaunch& launch : trace.launches()) {
    const TraceWork& work = trace.work_of(launch);
    if (work.operator_name.find("attention") != std::string::npos) flops += work.flops;
  }
  return flops;
}

// Forward has two products, backward five, of two heads of width 64.
TEST_F(ExecTrace, CountsEachSequenceOfPackedAttentionWithItsLength) {
  const ProgramResult result = run_program("packed_attention.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(attention_flops(trace(0)), (2 + 5) * 2.0 * 2 * 64 * (96 * 96 + 32 * 32));
  EXPECT_THAT(result.output, Not(HasSubstr("lengths are not known")));
  const ProgramResult unknown = run_program("packed_attention.py", {}, {"unknown"});
  ASSERT_EQ(unknown.exit_code, 0) << unknown.error;
  EXPECT_EQ(attention_flops(trace(0)), (2 + 5) * 2.0 * 2 * 64 * 128 * 128)
      << "no sequence is longer than all";
  EXPECT_THAT(unknown.output, HasSubstr("attention over sequences whose lengths are not known"));
}

// The step has one kernel, which updates the only parameter.
TEST_F(ExecTrace, OfAStepInsideAModuleTellsTheStepApart) {
  const ProgramResult result = run_program("steps_in_module.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Trace whole = trace(0);
  std::vector<std::string> modules;
  for (const estimator::TraceLaunch& launch : whole.launches()) {
    if (launch.direction != static_cast<int64_t>(estimator::Direction::kOptimizerStep)) continue;
    modules.push_back(whole.modules[static_cast<std::size_t>(launch.module)]);
  }
  EXPECT_THAT(modules, testing::ElementsAre(""));
}

TEST_F(ExecTrace, OfRanksThatWouldHangSaysWhichCallsWait) {
  const ProgramResult result = run_program(
      "deadlock.py", {"--world-size", "2", "--steps", "2", "--ranks", "0,1"}, {"--its-own-flag"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("the ranks wait for each other for ever"));
  EXPECT_THAT(result.error, HasSubstr("rank 0: all_reduce of default_pg"));
  EXPECT_THAT(result.error, HasSubstr("rank 1: all_reduce of "));
}

}  // namespace
}  // namespace sim
