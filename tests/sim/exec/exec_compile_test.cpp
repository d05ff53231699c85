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
  const std::vector<std::string> ways = {"lengths",  // the first one's iterations are recorded
                                         "step",
                                         "bound_step",
                                         "own_step",
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
  EXPECT_THAT(recorded.output, HasSubstr("lengths graphs 2 "));
  EXPECT_EQ(profile(0).program->recorded_iteration, 2) << "the first that compiles nothing";
  EXPECT_EQ(profile(0).trace->iteration, 2);
  EXPECT_THAT(recorded.output, HasSubstr("whole graphs 1 calls 9 breaks 0 "));
  EXPECT_THAT(recorded.error, Not(HasSubstr("global hooks")));
}

TEST_F(ExecCompile, AStepInWhichCodeWasCompiledSaysSo) {
  const ProgramResult result = run_program("compiled.py", {"--steps", "2"}, {"lengths"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(0).program->recorded_iteration, 1);
  EXPECT_THAT(result.output, HasSubstr("code was compiled or loaded in the iteration"));
}

TEST_F(ExecCompile, ModulesAreToldAroundCompiledOnes) {
  ASSERT_EQ(run_program("compiled.py", {}, {"regional_recompute"}).exit_code, 0);
  EXPECT_THAT(module_paths(), testing::IsSupersetOf({"layers.0", "layers.1", "head"}));
  EXPECT_THAT(module_paths(), Not(Contains("layers.0.up"))) << "it was compiled away";
}

TEST_F(ExecCompile, ModulesHaveTheNamesThatTheyHaveInEagerCode) {
  ASSERT_EQ(run_program("compiled.py", {}, {"replaced"}).exit_code, 0);
  EXPECT_THAT(module_paths(), testing::IsSupersetOf({"layers.0", "layers.1", "head"}));
  EXPECT_THAT(module_paths(), testing::Each(Not(HasSubstr("_orig_mod"))));
}

TEST_F(ExecCompile, WholeModulesAreToldAsOne) {
  ASSERT_EQ(run_program("compiled.py", {}, {"whole"}).exit_code, 0);
  EXPECT_THAT(module_paths(), Not(Contains(HasSubstr("layers"))));
}

/// A step that is compiled is one like another: what is told of it is as of the eager one.
class ExecCompiledStep : public ExecCompile {
 protected:
  struct Told {
    std::vector<std::string> phases;
    int64_t steps = 0, parameters = 0, gradients = 0, optimizer_state = 0;

    bool operator==(const Told&) const = default;
  };

  Told told_of(const std::string& way) {
    EXPECT_EQ(run_program("compiled.py", {}, {way}).exit_code, 0) << way;
    const auto profile = ExecProgram::profile(0);
    const auto& peak = *profile.peak.categories;
    Told told{.phases = {},
              .steps = profile.program->optimizer_steps,
              .parameters = peak[estimator::MemoryCategory::kParameter],
              .gradients = peak[estimator::MemoryCategory::kGradient],
              .optimizer_state = peak[estimator::MemoryCategory::kOptimizerState]};
    for (const auto& phase : profile.phases) told.phases.push_back(phase.name);
    return told;
  }
};

TEST_F(ExecCompiledStep, IsToldAsTheEagerOne) {
  Told eager = told_of("eager");
  EXPECT_EQ(eager.steps, 3);
  EXPECT_THAT(eager.phases, Contains("iteration_2.optimizer_step"));
  // Compiled, AdamW counts its steps on the GPU: for each of 10 parameters, a block of 512 bytes.
  eager.optimizer_state += int64_t{10} * 512;
  EXPECT_TRUE(told_of("bound_step") == eager);
  EXPECT_TRUE(told_of("step") == eager);
}

TEST_F(ExecCompiledStep, OfAnOptimizerOfTheProgramsOwnCountsToo) {
  const Told eager = told_of("own");
  EXPECT_EQ(eager.steps, 3);
  EXPECT_TRUE(told_of("own_step") == eager);
}

}  // namespace
}  // namespace sim
