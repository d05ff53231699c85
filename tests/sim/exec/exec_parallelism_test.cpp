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
  const ProgramResult estimate = run({"estimate", "--profiles", path("out")});
  EXPECT_EQ(estimate.exit_code, 0) << estimate.error;
  // Reserved, the context of an H100, and NCCL's buffers: a stage's neighbours are in other
  // machines, and share two pools.
  EXPECT_THAT(estimate.output, testing::StartsWith("fits: rank 0 needs "));
  EXPECT_THAT(estimate.output, HasSubstr("NCCL mesh_pp group of 4"));
  EXPECT_THAT(estimate.output, HasSubstr("over the network: 2 pools x 4 channels x 2 MiB"));
}

}  // namespace
}  // namespace sim
