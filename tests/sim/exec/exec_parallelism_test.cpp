// Programs of each kind of parallelism run to their end as any rank, with the collectives that they
// must have.

#include <algorithm>

#include "estimator/profile/peak_snapshot.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Layout {
  const char* program;
  const char* rank;
  const char* argument;
  const char* collective;  ///< that must be among its calls
  int64_t group_size;
};

void PrintTo(const Layout& c, std::ostream* stream) {
  *stream << c.program << " as rank " << c.rank << " " << c.argument;
}

class ExecStages : public ExecProgram {
 protected:
  bool has_call(int64_t rank, const std::string& collective, int64_t group_size) const {
    const auto communicators = profile(rank).program->communicators;
    return std::any_of(communicators.begin(), communicators.end(), [&](const auto& communicator) {
      return communicator.size == group_size &&
             std::any_of(communicator.calls.begin(),
                         communicator.calls.end(),
                         [&](const auto& call) { return call.kind == collective; });
    });
  }
};

class ExecParallelism : public ExecStages, public testing::WithParamInterface<Layout> {};

TEST_P(ExecParallelism, RunsToTheEnd) {
  const Layout& c = GetParam();
  for (const char* package : {"numpy", "transformers"}) {
    if (!has_package(package)) GTEST_SKIP() << "no " << package << ": scripts/test installs it";
  }
  const std::vector<std::string> arguments =
      *c.argument == '\0' ? std::vector<std::string>{} : std::vector<std::string>{c.argument};
  const ProgramResult result =
      run_program(c.program, {"--world-size", "64", "--rank", c.rank}, arguments);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(std::stoll(c.rank)).program->optimizer_steps, 2);
  EXPECT_TRUE(has_call(std::stoll(c.rank), c.collective, c.group_size));
}

INSTANTIATE_TEST_SUITE_P(Programs,
                         ExecParallelism,
                         testing::Values(Layout{"ddp.py", "0", "", "all_reduce", 64},
                                         Layout{"ddp.py", "27", "", "all_reduce", 64},
                                         Layout{"fsdp2.py", "0", "", "reduce_scatter", 64},
                                         Layout{"fsdp2.py", "27", "", "reduce_scatter", 64},
                                         Layout{"fsdp2.py", "0", "hsdp", "reduce_scatter", 8},
                                         Layout{"fsdp2.py", "27", "hsdp", "reduce_scatter", 8},
                                         Layout{"tensor_parallel.py", "0", "", "all_reduce", 8},
                                         Layout{"tensor_parallel.py", "27", "", "all_reduce", 8},
                                         Layout{"context_parallel.py", "0", "", "all_gather", 8},
                                         Layout{"context_parallel.py", "27", "", "all_gather", 8},
                                         Layout{"all_to_all.py", "0", "", "send", 64},
                                         Layout{"all_to_all.py", "27", "", "send", 64},
                                         Layout{"trainer.py", "27", "", "all_reduce", 64},
                                         Layout{"trainer.py", "27", "fsdp", "reduce_scatter", 64}));

TEST_F(ExecStages, ThatWaitForOthersNameThoseToRun) {
  const ProgramResult alone = run_program("pipeline.py", {"--world-size", "64", "--rank", "16"});
  EXPECT_THAT(alone.output, HasSubstr("no step time: rank 16 waits for messages of rank "));
  EXPECT_THAT(alone.output, HasSubstr("give --ranks 0,16,32,48, or --ranks auto\n"));
  EXPECT_EQ(profile(16).program->run, std::nullopt);
}

TEST_F(ExecStages, AreFoundAndMakeTheClustersTimeAndMemory) {
  const ProgramResult all =
      run_program("pipeline.py",
                  {"--world-size", "64", "--ranks", "auto", "--peak-snapshot", path("peak.jsonl")});
  ASSERT_EQ(all.exit_code, 0) << all.error;
  EXPECT_THAT(all.output, HasSubstr("\nstep time "));
  EXPECT_THAT(all.output, Not(HasSubstr("no step time")));
  for (const int64_t rank : {0, 16, 32, 48, 63}) {
    EXPECT_THAT(all.output, HasSubstr("rank " + std::to_string(rank) + " of"));
    EXPECT_EQ(profile(rank).program->optimizer_steps, 2);
    EXPECT_TRUE(has_call(rank, rank == 0 ? "send" : "recv", 4));
    const std::string file =
        "peak-rank-000" + std::string(rank < 10 ? "0" : "") + std::to_string(rank) + ".jsonl";
    EXPECT_EQ(estimator::read_peak_snapshot(read(file), file).header.rank, rank);
  }
  EXPECT_TRUE(profile(0).program->run.has_value());
  EXPECT_EQ(profile(0).program->run, profile(63).program->run);
  const ProgramResult estimate = run({"estimate", "--sources", "--profiles", path("out")});
  EXPECT_EQ(estimate.exit_code, 0) << estimate.error;
  // Reserved, the context of an H100, and NCCL's buffers: a stage's neighbours are in other
  // machines, and share two pools.
  EXPECT_THAT(estimate.output, testing::StartsWith("fits: rank 0 needs "));
  EXPECT_THAT(estimate.output, HasSubstr("NCCL mesh_pp group of 4"));
  EXPECT_THAT(estimate.output, HasSubstr("over the network: 2 pools x 4 channels x 2 MiB"));
}

class ExecMessages : public ExecProgram {
 protected:
  void SetUp() override {
    ExecProgram::SetUp();
    if (!has_package("numpy")) GTEST_SKIP() << "no numpy: scripts/test installs it";
  }
};

TEST_F(ExecMessages, RanksHearWhatOthersSayAndAreStartedForIt) {
  const ProgramResult result = run_program("messages.py", {"--world-size", "4", "--ranks", "0,3"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const char* rank : {"0", "1", "2", "3"}) {  // 1 and 2 are in the pipeline before 3
    EXPECT_THAT(result.output, HasSubstr("rank " + std::string(rank) + " has heard"));
    EXPECT_EQ(profile(std::stoll(rank)).program->optimizer_steps, 1);
  }
}

TEST_F(ExecMessages, AutoRunsRankZeroAndTheLastTogether) {
  const ProgramResult result =
      run_program("messages.py", {"--world-size", "16", "--ranks", "auto"}, {"flag"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("rank 0 has heard"));
  EXPECT_THAT(result.output, HasSubstr("rank 15 has heard"));
}

TEST_F(ExecMessages, WhatNobodySaysIsNamedWithItsGroupAndLine) {
  const ProgramResult result =
      run_program("messages.py", {"--world-size", "4", "--ranks", "0,3"}, {"silence"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(
      result.error,
      HasSubstr("a broadcast of 8 bytes (Long) from rank 0 over group default_pg of 4 ranks, "
                "messages.py:20 in same_for_all: rank 0 has ended and did not send it"));
}

/// A rank's object has 10 characters more than that of the rank before it.
TEST_F(ExecMessages, WhatRanksGatherIsHeardOfThoseThatAreRun) {
  const ProgramResult result =
      run_program("gathers.py", {"--world-size", "4", "--ranks", "1,2", "--verbose"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const std::string group : {"nccl", "gloo"}) {
    EXPECT_THAT(result.output, HasSubstr("1 " + group + " objects [11, 11, 21, 11]\n"));
    EXPECT_THAT(result.output, HasSubstr("1 " + group + " numbers [1, 1, 2, 1]\n"));
    EXPECT_THAT(result.output, HasSubstr("2 " + group + " objects [21, 11, 21, 21]\n"));
    EXPECT_THAT(result.output, HasSubstr("2 " + group + " numbers [2, 1, 2, 2]\n"));
  }
  EXPECT_THAT(result.output, testing::ContainsRegex("all_gather  default_pg  +4  .*2 of 4 ranks"));
}

TEST_F(ExecMessages, AutoGathersFromRankZeroTheLastAndADrawnOne) {
  const ProgramResult result = run_program("gathers.py", {"--world-size", "4", "--ranks", "auto"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("0 nccl objects [1, 1, 21, 31]\n"));
  EXPECT_THAT(result.output, HasSubstr("0 gloo objects [1, 1, 21, 31]\n"));
  EXPECT_THAT(result.output, HasSubstr("0 nccl rooted [1, 1, 21, 31]\n"));
  EXPECT_THAT(result.output, HasSubstr("0 gloo rooted [1, 1, 21, 31]\n"));
  EXPECT_THAT(result.output, HasSubstr("0 lengths [1.0, 1.0, 21.0, 31.0]\n"));
  EXPECT_THAT(result.output, HasSubstr("3 nccl objects [1, 31, 21, 31]\n"));
}

TEST_F(ExecMessages, WhatIsAssumedOfAbsentRanksIsCounted) {
  const ProgramResult result = run_program("gathers.py", {"--world-size", "4", "--rank", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("2 nccl objects [21, 21, 21, 21]\n"));
  // Of each group an object (its length and itself), numbers, and the lengths for the root.
  EXPECT_THAT(result.output,
              HasSubstr("\nvalues assumed: of absent ranks what this one holds (all_gather 8, "
                        "all_reduce 1) (--verbose lists them)\n"));
  EXPECT_THAT(result.output, Not(HasSubstr("assumed of absent ranks"))) << "only with --verbose";
  int64_t gathers = 0;
  const estimator::RankProfile ran = profile(2);
  for (const auto& answer : ran.program->absent_answers) {
    if (answer.kind != "all_gather") continue;
    gathers += answer.count;
    EXPECT_EQ(answer.why, "3 of 4 ranks were not run");
    EXPECT_THAT(answer.line, HasSubstr("gathers.py:"));
  }
  EXPECT_EQ(gathers, 8);
}

/// The parts of absent ranks are copies of this one's, which do not make a whole.
TEST_F(ExecMessages, ACheckpointOfWhatIsShardedIsSavedAndRead) {
  for (const std::string ranks : {"0", "auto"}) {
    const ProgramResult result = run_program(
        "checkpoints.py", {"--world-size", "8", "--ranks", ranks}, {path("checkpoint-" + ranks)});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("read\n"));
  }
}

TEST_F(ExecMessages, AfterAFailureWithGatheredCopiesAllRanksAreNamed) {
  const ProgramResult result =
      run_program("checks_gathered.py", {"--world-size", "4", "--ranks", "auto"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("--ranks with all ranks of the group gives each its own"));
  EXPECT_THAT(result.error, Not(HasSubstr("--ranks auto")));
}

/// What an operator on a DTensor broadcasts is known: it is no memory of kernels.
TEST_F(ExecMessages, OfTheStateOfGeneratorsAreKnown) {
  const ProgramResult result = run_program("fsdp2_meta.py", {"--world-size", "16", "--rank", "9"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(run_program("fsdp2_meta.py", {"--world-size", "16"}).error,
              Not(HasSubstr("synchronizing RNG states")));
}

TEST_F(ExecMessages, AProgramThatAssumesNothingSaysSo) {
  EXPECT_THAT(run_program("plain.py", {}).output, HasSubstr("\nvalues assumed: none\n"));
}

TEST_F(ExecMessages, AnAllToAllWithSplitsBringsWhatThisRankHasForItself) {
  const ProgramResult result =
      run_program("split_exchange.py", {"--world-size", "4", "--rank", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("rank 2 has counted"));
}

class ExecPrepared : public ExecMessages, public testing::WithParamInterface<const char*> {};

TEST_P(ExecPrepared, ByRankZeroIsThereForTheOthers) {
  const ProgramResult result = run_program(
      "prepares.py", {"--world-size", "4", "--ranks", "0,3"}, {GetParam(), path("prepared")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("rank 0 goes on"));
  EXPECT_THAT(result.output, HasSubstr("rank 3 goes on"));
}

INSTANTIATE_TEST_SUITE_P(Ways,
                         ExecPrepared,
                         testing::Values("file", "gloo", "key", "poll"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(ExecMessages, ABarrierThatNobodyElseComesToIsNamedWhereTheProgramFails) {
  const ProgramResult result =
      run_program("prepares.py", {"--world-size", "4", "--rank", "3"}, {"file", path("prepared")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.error,
      HasSubstr("it did not wait for absent ranks at barriers (barrier over group default_pg of "
                "4 ranks, prepares.py:29 in <module>: rank 0 was not run)"));
}

TEST_F(ExecMessages, AWaitWithoutEndIsNamedWithItsLine) {
  const ProgramResult result = run_program("prepares.py",
                                           {"--world-size", "4", "--rank", "3", "--timeout", "25"},
                                           {"alone", path("prepared")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(
      result.error,
      HasSubstr("error: the program was ended after 25 s at prepares.py:21 in wait_for, and no "
                "optimizer step was seen\n"));
}

struct Alone {
  const char* part;
  int exit_code;
  const char* said;
};

class ExecAloneMessages : public ExecMessages, public testing::WithParamInterface<Alone> {};

TEST_P(ExecAloneMessages, TheMessageOfAnAbsentRankIsNamed) {
  const Alone& c = GetParam();
  const std::vector<std::string> arguments =
      *c.part == '\0' ? std::vector<std::string>{} : std::vector<std::string>{c.part};
  const ProgramResult result =
      run_program("messages.py", {"--world-size", "4", "--rank", "3"}, arguments);
  EXPECT_EQ(result.exit_code, c.exit_code);
  EXPECT_THAT(result.error, HasSubstr(c.said));
  EXPECT_THAT(result.error, HasSubstr("--ranks auto"));
}

INSTANTIATE_TEST_SUITE_P(
    Parts,
    ExecAloneMessages,
    testing::Values(
        Alone{"",
              3,
              "from rank 0 over group of gloo of 4 ranks, messages.py:20 in same_for_all: "
              "rank 0 was not run"},
        Alone{"object",
              3,
              "from rank 0 over group default_pg of 4 ranks, messages.py:20 in "
              "same_for_all: rank 0 was not run"},
        Alone{"flag",
              2,
              "it was given what it held itself (broadcast over group default_pg of 4 ranks, "
              "messages.py:"}),
    [](const auto& test) {
      return *test.param.part == '\0' ? std::string("gloo") : std::string(test.param.part);
    });

}  // namespace
}  // namespace sim
