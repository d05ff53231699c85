// torch.compile: what it compiles is the program alone, and the modules beside it are told.

#include <algorithm>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

class ExecCompile : public ExecProgram {
 protected:
  /// What the program printed of its ways, without what Onerank did.
  static std::string told(const std::string& output) {
    return output.substr(0, output.find("\n\n"));
  }
  /// Of the modules that were seen to run; others are there for their parameters alone.
  std::vector<std::string> module_paths() const {
    std::vector<std::string> paths;
    for (const auto& module : profile(0).modules) {
      if (module.forward_peak_bytes > 0) paths.push_back(module.path);
    }
    return paths;
  }
};

TEST_F(ExecCompile, SeesNothingOfTheRecorder) {
  const std::vector<std::string> ways = {"step",
                                         "whole",
                                         "fullgraph",
                                         "in_place",
                                         "sequential",
                                         "function",
                                         "regional",
                                         "replaced",
                                         "broken",
                                         "recompute",
                                         "regional_recompute"};
  const ProgramResult alone = run_program("compiled.py", {"--no-recording"}, ways);
  const ProgramResult recorded = run_program("compiled.py", {}, ways);
  ASSERT_EQ(recorded.exit_code, 0) << recorded.error;
  EXPECT_EQ(told(recorded.output), told(alone.output));
  EXPECT_THAT(recorded.output, HasSubstr("whole graphs 1 calls 13 breaks 0 "));
  EXPECT_THAT(recorded.error, Not(HasSubstr("global hooks")));
}

TEST_F(ExecCompile, ModulesAreToldAroundCompiledOnes) {
  ASSERT_EQ(run_program("compiled.py", {}, {"regional_recompute"}).exit_code, 0);
  EXPECT_THAT(module_paths(), testing::IsSupersetOf({"layers.0", "layers.2", "head"}));
  EXPECT_THAT(module_paths(), Not(Contains("layers.0.up"))) << "it was compiled away";
}

TEST_F(ExecCompile, ModulesHaveTheNamesThatTheyHaveInEagerCode) {
  ASSERT_EQ(run_program("compiled.py", {}, {"replaced"}).exit_code, 0);
  EXPECT_THAT(module_paths(), testing::IsSupersetOf({"layers.0", "layers.2", "head"}));
  EXPECT_THAT(module_paths(), testing::Each(Not(HasSubstr("_orig_mod"))));
}

TEST_F(ExecCompile, WholeModulesAreToldAsOne) {
  ASSERT_EQ(run_program("compiled.py", {}, {"whole"}).exit_code, 0);
  EXPECT_THAT(module_paths(), Not(Contains(HasSubstr("layers"))));
}

}  // namespace
}  // namespace sim
