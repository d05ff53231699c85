// Programs of each kind of parallelism run to their end as any rank, with the collectives that they
// must have.

#include <algorithm>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

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

class ExecParallelism : public ExecProgram, public testing::WithParamInterface<Layout> {};

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
                         testing::Values(Layout{"ddp.py", "0", "", "all_reduce", 64},
                                         Layout{"ddp.py", "27", "", "all_reduce", 64},
                                         Layout{"fsdp2.py", "0", "", "reduce_scatter", 64},
                                         Layout{"fsdp2.py", "27", "", "reduce_scatter", 64},
                                         Layout{"fsdp2.py", "0", "hsdp", "reduce_scatter", 8},
                                         Layout{"fsdp2.py", "27", "hsdp", "reduce_scatter", 8},
                                         Layout{"tensor_parallel.py", "0", "", "all_reduce", 8},
                                         Layout{"tensor_parallel.py", "27", "", "all_reduce", 8},
                                         Layout{"pipeline.py", "0", "", "send", 4},
                                         Layout{"pipeline.py", "16", "", "recv", 4},
                                         Layout{"pipeline.py", "32", "", "send", 4},
                                         Layout{"pipeline.py", "63", "", "recv", 4},
                                         Layout{"context_parallel.py", "0", "", "all_gather", 8},
                                         Layout{"context_parallel.py", "27", "", "all_gather", 8},
                                         Layout{"all_to_all.py", "0", "", "send", 64},
                                         Layout{"all_to_all.py", "27", "", "send", 64},
                                         Layout{"trainer.py", "27", "", "all_reduce", 64},
                                         Layout{"trainer.py", "27", "fsdp", "reduce_scatter", 64}));

}  // namespace
}  // namespace sim
