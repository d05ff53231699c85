#include "estimator/program/program_estimate.h"

#include <gmock/gmock.h>

#include "tests/estimator/cluster/small_program.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

ProgramEstimate estimated_with(const ProgramRun& run) {
  return estimate_program({small_program()}, nullptr, run);
}

TEST(ProgramEstimate, TakesTheTokensThatAreSaid) {
  const ProgramEstimate estimate =
      estimated_with({.global_batch_size = 16, .sequence_length = 1024});
  const ProgramThroughput& throughput = estimate.throughput.value();
  const double seconds = estimate.time->iteration_seconds;
  EXPECT_EQ(throughput.tokens_per_step, 16384);
  EXPECT_EQ(throughput.tokens_source, Source::kGiven);
  EXPECT_DOUBLE_EQ(throughput.tokens_per_second.value(), 16384 / seconds);
  EXPECT_DOUBLE_EQ(throughput.tokens_per_second_per_gpu.value(), 16384 / seconds / 8);
  EXPECT_DOUBLE_EQ(throughput.samples_per_second.value(), 16 / seconds);
}

RankProfile of_run(int64_t rank, const std::optional<std::string>& run) {
  RankProfile profile = small_program();
  profile.rank = rank;
  profile.program->communicators.front().rank = rank;
  profile.program->run = run;
  return profile;
}

TEST(ProgramEstimate, OfRanksOfSeveralRunsIsRefused) {
  EXPECT_EQ(estimate_program({of_run(0, "a1"), of_run(1, "a1")}).ranks.size(), std::size_t{2});
  EXPECT_THAT(
      [] {
        estimate_program({of_run(0, "a1"), of_run(1, "b2")});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("are of several runs"),
                                     HasSubstr("rank 0: of the run a1"),
                                     HasSubstr("rank 1: of the run b2"))));
  EXPECT_THAT(
      [] {
        estimate_program({of_run(0, std::nullopt), of_run(1, "b2")});
      },
      ThrowsMessage<UserError>(HasSubstr("rank 0: it was run by itself")));
}

TEST(ProgramEstimate, OfRanksThatWereRunOneByOneSaysWhatItAssumes) {
  const auto apart = estimate_program({of_run(0, std::nullopt), of_run(1, std::nullopt)});
  EXPECT_THAT(apart.assumptions, Contains(HasSubstr("the ranks were run one by one")));
  const auto alone = estimate_program({of_run(0, std::nullopt)});
  EXPECT_THAT(alone.assumptions, Not(Contains(HasSubstr("the ranks were run one by one"))));
}

TEST(ProgramEstimate, WithoutTokensSaysHowToGiveThem) {
  const ProgramEstimate estimate = estimated_with({});
  EXPECT_FALSE(estimate.throughput->tokens_per_second.has_value());
  EXPECT_THAT(estimate.throughput->tokens_note, HasSubstr("give --tokens-per-step"));
  EXPECT_FALSE(estimate.training.has_value());
}

TEST(ProgramEstimate, HasTheTrainingOfAPlan) {
  const ProgramEstimate estimate =
      estimated_with({.tokens_per_step = 1000, .tokens = 10500, .usd_per_gpu_hour = 2});
  const TrainingEstimate& training = estimate.training.value();
  EXPECT_EQ(training.steps, 11);
  EXPECT_DOUBLE_EQ(training.seconds_without_failures, 11 * estimate.time->iteration_seconds);
  EXPECT_EQ(training.costs.at(0).provider, "the command line");
  EXPECT_DOUBLE_EQ(training.cost_usd.value(), 2 * training.gpu_hours);
}

TEST(ProgramEstimate, OfTokensWithoutThoseOfAStepIsRefused) {
  EXPECT_THAT(complaint_of([] { estimated_with({.tokens = 1000}); }),
              HasSubstr("the tokens of a step are not known"));
}

TEST(ProgramEstimate, UsesAMeasuredStepForAllButTheParts) {
  const ProgramEstimate plain = estimated_with({.tokens_per_step = 1000, .steps = 10});
  const double seconds = plain.time->iteration_seconds;
  const ProgramEstimate measured = estimated_with(
      {.tokens_per_step = 1000, .steps = 10, .measured_step_seconds = 1.25 * seconds});
  EXPECT_DOUBLE_EQ(measured.measured_step->factor, 1.25);
  EXPECT_EQ(measured.time->iteration_seconds, seconds);
  EXPECT_DOUBLE_EQ(measured.time->mfu, plain.time->mfu / 1.25);
  EXPECT_DOUBLE_EQ(*measured.throughput->tokens_per_second,
                   *plain.throughput->tokens_per_second / 1.25);
  EXPECT_DOUBLE_EQ(measured.training->seconds_without_failures, 12.5 * seconds);
}

TEST(ProgramRun, ThatContradictsItselfIsRefused) {
  const auto complaint = [](const ProgramRun& run) {
    return complaint_of([&] { static_cast<void>(run.said_tokens()); });
  };
  EXPECT_THAT(complaint({.sequence_length = 8}), HasSubstr("give --global-batch-size too"));
  EXPECT_THAT(complaint({.global_batch_size = 2, .sequence_length = 8, .tokens_per_step = 15}),
              HasSubstr("2 x 8 = 16"));
  EXPECT_EQ((ProgramRun{.global_batch_size = 2, .sequence_length = 8, .tokens_per_step = 16})
                .said_tokens(),
            16);
}

}  // namespace
}  // namespace estimator
