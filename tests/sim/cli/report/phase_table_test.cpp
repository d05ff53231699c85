#include <gmock/gmock.h>

#include "sim/cli/report/profile_report.h"

namespace sim {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Iterations 0 to `last`, of which those from 1 on have `mib` allocated, and 99 another peak.
estimator::RankProfile profile_of(int last) {
  estimator::RankProfile profile;
  for (int i = 0; i <= last; ++i) {
    const int64_t bytes = int64_t{i == 0 ? 1 : 2} << 20;
    for (const char* part : {".forward_backward", ".optimizer_step"}) {
      profile.phases.push_back({.name = "iteration_" + std::to_string(i) + part,
                                .before = {bytes, bytes},
                                .after = {bytes, bytes},
                                .peak = {i == 99 ? 8 * bytes : bytes, bytes},
                                .seconds = 1});
    }
  }
  profile.phases.push_back({.name = "end"});
  return profile;
}

TEST(PhaseTable, FoldsEqualIterations) {
  const std::string text = phase_table(profile_of(100)).text();
  for (const char* line : {"iteration_0.forward_backward",
                           "iteration_1.optimizer_step",
                           "iterations 2 to 98",
                           "iteration_99.optimizer_step",
                           "iteration_100.optimizer_step",
                           "end"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr("194.00 s")) << "of two phases in each of 97 iterations";
  EXPECT_THAT(text, Not(HasSubstr("iteration_2.")));
}

TEST(PhaseTable, ShowsTheLastOneOfTwo) {
  const std::string text = phase_table(profile_of(2)).text();
  EXPECT_THAT(text, HasSubstr("iteration_2.optimizer_step"));
  EXPECT_THAT(text, Not(HasSubstr("iterations ")));
}

}  // namespace
}  // namespace sim
