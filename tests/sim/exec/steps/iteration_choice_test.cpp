#include "sim/exec/steps/iteration_choice.h"

#include <gtest/gtest.h>

#include <vector>

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

const CalledCollective kReduce{.communicator = 0, .kind = "all_reduce", .bytes = 64};
const CalledCollective kRebuild{.communicator = 0, .kind = "broadcast", .bytes = 4};

bool ends(IterationChoice& choice, int64_t iteration) {
  choice.compare(iteration + 1);
  return choice.iteration_began(iteration + 1);
}

// DistributedDataParallel's reducer lays out its buckets in the second iteration.
TEST(IterationChoice, GoesOnWhereAnIterationCallsMoreThanTheOneBefore) {
  IterationChoice choice(3);
  choice.called(0, kReduce);
  EXPECT_FALSE(ends(choice, 0));
  choice.called(1, kRebuild);
  choice.called(1, kReduce);
  EXPECT_TRUE(ends(choice, 1));
  choice.called(2, kReduce);
  EXPECT_FALSE(ends(choice, 2));
  EXPECT_EQ(choice.chosen(), 2);
  EXPECT_TRUE(choice.facts().is_usual());
}

// ... and with static_graph in the third.
TEST(IterationChoice, GoesOnWhereTheNextIterationCallsOthers) {
  for (const int64_t steps : {3, 4}) {
    IterationChoice choice(steps);
    for (int64_t i = 0; i < 2; ++i) {
      choice.called(i, kReduce);
      EXPECT_FALSE(ends(choice, i));
    }
    choice.called(2, kRebuild);
    choice.called(2, kReduce);
    EXPECT_EQ(ends(choice, 2), steps == 4);
    EXPECT_EQ(choice.facts().is_usual(), steps == 4) << "the program is ended after three";
    choice.called(3, kReduce);
    EXPECT_FALSE(ends(choice, 3));
    EXPECT_EQ(choice.chosen(), steps == 4 ? 3 : 1);
  }
}

// Whether an optimizer steps again in an iteration is known when the next one has begun.
TEST(IterationChoice, ComparesAnIterationAgainWithTheSameResult) {
  IterationChoice choice(0);
  for (int64_t i = 0; i < 5; ++i) {
    choice.called(i, kReduce);
    EXPECT_FALSE(ends(choice, i));
    EXPECT_FALSE(ends(choice, i)) << i;
  }
  EXPECT_EQ(choice.chosen(), 1);
  EXPECT_TRUE(choice.facts().is_usual());
}

TEST(IterationChoice, DoesNotGoOnForEverWhereCollectivesDiffer) {
  IterationChoice choice(0);
  for (int64_t i = 0; i < 100; ++i) {
    choice.called(i, {.communicator = 0, .kind = "all_reduce", .bytes = i});
    ends(choice, i);
  }
  EXPECT_LT(choice.chosen(), 10);
  EXPECT_TRUE(choice.facts().has_other_calls);
}

void multiply(IterationChoice& choice, int64_t iteration, int64_t products) {
  for (int64_t i = 0; i < products; ++i) choice.multiplied(iteration, 1);
}

/// The iteration that is chosen in the end, of some that have so many products.
IterationChoice chosen_of(int64_t steps, const std::vector<int64_t>& products) {
  IterationChoice choice(steps);
  for (int64_t i = 0; i < static_cast<int64_t>(products.size()); ++i) {
    multiply(choice, i, products[static_cast<std::size_t>(i)]);
    ends(choice, i);
  }
  return choice;
}

// minGPT's chargpt.py samples 500 tokens before its second iteration.
TEST(IterationChoice, GoesOnWhereAnIterationMultipliesMoreThanTheOneBefore) {
  const IterationChoice choice = chosen_of(3, {300, 4000, 300});
  EXPECT_EQ(choice.chosen(), 2);
  EXPECT_TRUE(choice.facts().is_usual());
}

TEST(IterationChoice, GoesOnWhereTheNextIterationMultipliesLess) {
  const IterationChoice choice = chosen_of(4, {400, 400, 300, 300});
  EXPECT_EQ(choice.chosen(), 3) << "the first two evaluated, each a batch";
  EXPECT_TRUE(choice.facts().is_usual());
}

TEST(IterationChoice, SaysThatAnIterationMultipliesMoreWhereNoneIsLeft) {
  for (const auto& products : {std::vector<int64_t>{300, 400}, {400, 400, 300}}) {
    const IterationChoice choice = chosen_of(static_cast<int64_t>(products.size()), products);
    EXPECT_EQ(choice.chosen(), 1);
    EXPECT_TRUE(choice.facts().multiplies_more);
    EXPECT_FALSE(choice.facts().is_usual());
  }
}

TEST(IterationChoice, KeepsAnIterationThatMultipliesAsMuchOrLess) {
  for (const auto& products :
       {std::vector<int64_t>{300, 300, 300}, {300, 330, 300}, {900, 300, 4000}, {0, 300, 0}}) {
    const IterationChoice choice = chosen_of(0, products);
    EXPECT_EQ(choice.chosen(), 1) << testing::PrintToString(products);
    EXPECT_TRUE(choice.facts().is_usual()) << testing::PrintToString(products);
  }
}

// A generator steps after its discriminator, by which the first iteration seemed to have ended.
TEST(IterationChoice, CountsForAnIterationWhatFollowsInIt) {
  IterationChoice choice(2);
  multiply(choice, 0, 100);
  ends(choice, 0);
  multiply(choice, 1, 100);
  choice.called(1, kReduce);
  choice.had_gone_on_until(1);
  ends(choice, 0);
  multiply(choice, 1, 200);
  choice.called(1, kReduce);
  ends(choice, 1);
  EXPECT_EQ(choice.chosen(), 1);
  EXPECT_TRUE(choice.facts().is_usual());
}

// A batch that was too large was tried first.
TEST(IterationChoice, DoesNotCountWhatWasTriedBefore) {
  IterationChoice choice(2);
  multiply(choice, 0, 300);
  ends(choice, 0);
  multiply(choice, 1, 100);
  choice.began_again(1);
  multiply(choice, 1, 300);
  ends(choice, 1);
  EXPECT_TRUE(choice.facts().is_usual());
}

void multiply(IterationChoice& choice, const std::vector<double>& multiply_adds) {
  for (int64_t i = 0; i < std::ssize(multiply_adds); ++i) {
    choice.multiplied(i, multiply_adds[static_cast<std::size_t>(i)]);
    EXPECT_FALSE(ends(choice, i));
  }
}

TEST(IterationChoice, TellsThatLaterIterationsMultiplyMore) {
  IterationChoice grows(0), evaluates(0), varies(0);
  multiply(grows, {8, 8, 8, 16, 16, 8});
  EXPECT_TRUE(grows.facts().later_ones_multiply_more);
  EXPECT_TRUE(grows.facts().is_usual()) << "it is recorded nevertheless";
  multiply(evaluates, {8, 8, 8, 16, 8, 16, 8});
  EXPECT_FALSE(evaluates.facts().later_ones_multiply_more);
  multiply(varies, {8, 8, 9, 9, 8, 9});
  EXPECT_FALSE(varies.facts().later_ones_multiply_more);
}

}  // namespace
}  // namespace sim
