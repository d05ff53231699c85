// Programs of each kind of parallelism run to their end as any rank, with the collectives that they
// must have.

#include <algorithm>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

struct Case {
  const char* program;
  const char* rank;
  const char* argument;
  const char* collective;  ///< that must be among its calls
  int64_t group_size;
};

void PrintTo(const Case& c, std::ostream* stream) {
  *stream << c.program << " as rank " << c.rank << " " << c.argument;
}

class ExecParallelism : public ExecProgram, public testing::WithParamInterface<Case> {};

TEST_P(ExecParallelism, RunsToTheEnd) {
  const Case& c = GetParam();
  for (const char* package : {"numpy", "transformers"}) {
    if (!has_package(package)) GTEST_SKIP() << "no " << package << ": scripts/test installs it";
  }
  const std::vector<std::string> arguments =
      *c.argument == '\0' ? std::vector<std::string>{} : std::vector<std::string>{c.argument};
  const ProgramResult result =
      run_program(c.program, {"--world-size", "64", "--rank", c.rank}, arguments);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto program = *profile(std::stoll(c.rank)).program;
  EXPECT_EQ(program.optimizer_steps, 2);
  const bool found = std::any_of(
      program.communicators.begin(), program.communicators.end(), [&](const auto& communicator) {
        return communicator.size == c.group_size &&
               std::any_of(communicator.calls.begin(),
                           communicator.calls.end(),
                           [&](const auto& call) { return call.kind == c.collective; });
      });
  EXPECT_TRUE(found) << c.collective << " in a group of " << c.group_size;
}

INSTANTIATE_TEST_SUITE_P(Programs,
                         ExecParallelism,
                         testing::Values(Case{"ddp.py", "0", "", "all_reduce", 64},
                                         Case{"ddp.py", "27", "", "all_reduce", 64},
                                         Case{"fsdp2.py", "0", "", "reduce_scatter", 64},
                                         Case{"fsdp2.py", "27", "", "reduce_scatter", 64},
                                         Case{"fsdp2.py", "0", "hsdp", "reduce_scatter", 8},
                                         Case{"fsdp2.py", "27", "hsdp", "reduce_scatter", 8},
                                         Case{"tensor_parallel.py", "0", "", "all_reduce", 8},
                                         Case{"tensor_parallel.py", "27", "", "all_reduce", 8},
                                         Case{"pipeline.py", "0", "", "send", 4},
                                         Case{"pipeline.py", "16", "", "recv", 4},
                                         Case{"pipeline.py", "32", "", "send", 4},
                                         Case{"pipeline.py", "63", "", "recv", 4},
                                         Case{"context_parallel.py", "0", "", "all_gather", 8},
                                         Case{"context_parallel.py", "27", "", "all_gather", 8},
                                         Case{"all_to_all.py", "0", "", "send", 64},
                                         Case{"all_to_all.py", "27", "", "send", 64},
                                         Case{"trainer.py", "27", "", "all_reduce", 64},
                                         Case{"trainer.py", "27", "fsdp", "reduce_scatter", 64}));

}  // namespace
}  // namespace sim
