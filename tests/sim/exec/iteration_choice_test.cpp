#include "sim/exec/iteration_choice.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

TEST(IterationChoice, TakesTheSecondIteration) {
  IterationChoice choice(0);
  choice.compiled(0);  // as every program does
  EXPECT_FALSE(choice.iteration_began(1));
  EXPECT_FALSE(choice.iteration_began(2));
  EXPECT_EQ(choice.chosen(), 1);
  EXPECT_EQ(IterationChoice(1).chosen(), 0) << "there is no second one";
}

TEST(IterationChoice, GoesOnWhileIterationsCompileOrCapture) {
  IterationChoice choice(0);
  choice.compiled(1);
  EXPECT_TRUE(choice.iteration_began(2));
  choice.graph_captured(2);
  EXPECT_TRUE(choice.iteration_began(3));
  choice.had_other_steps(3);
  EXPECT_TRUE(choice.iteration_began(5)) << "the fourth has ended, too";
  EXPECT_FALSE(choice.iteration_began(6));
  EXPECT_EQ(choice.chosen(), 5);
  EXPECT_TRUE(choice.facts().is_usual());
}

TEST(IterationChoice, PrefersAnIterationThatLaunchesAGraph) {
  IterationChoice choice(0);
  EXPECT_FALSE(choice.iteration_began(2));
  choice.graph_launched(4);
  EXPECT_TRUE(choice.iteration_began(5));
  choice.graph_launched(5);
  EXPECT_FALSE(choice.iteration_began(6));
  choice.graph_launched(6);
  EXPECT_FALSE(choice.iteration_began(7));
}

TEST(IterationChoice, KeepsWhatItHasWhereTheProgramIsEnded) {
  IterationChoice choice(2);
  choice.compiled(1);
  EXPECT_FALSE(choice.iteration_began(2));
  EXPECT_TRUE(choice.facts().compiles);
}

}  // namespace
}  // namespace sim
