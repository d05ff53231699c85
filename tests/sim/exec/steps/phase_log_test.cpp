#include "sim/exec/steps/phase_log.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace sim {
namespace {

using testing::ElementsAre;

std::chrono::steady_clock::time_point second(int number) {
  return std::chrono::steady_clock::time_point(std::chrono::seconds(number));
}

/// A boundary at which `now` bytes are allocated after a peak of `peak` bytes.
Boundary at(int seconds, int64_t now, int64_t peak) {
  return {.now = {now, 2 * now}, .peak = {peak, 2 * peak}, .time = second(seconds)};
}

std::vector<std::string> names(const std::vector<estimator::PhaseRecord>& phases) {
  std::vector<std::string> names;
  for (const auto& phase : phases) names.push_back(phase.name);
  return names;
}

TEST(PhaseLog, TellsIterationsApartByOptimizerSteps) {
  PhaseLog log(second(0));
  log.optimizer_made(at(1, 10, 12));
  log.forward_started(at(2, 15, 15));
  log.backward_ran();
  log.step_started(at(3, 20, 50));
  log.step_finished(at(4, 30, 35));
  log.backward_ran();
  log.step_started(at(6, 20, 60));
  log.step_finished(at(7, 30, 36));
  const auto phases = log.finished(at(8, 5, 30));
  EXPECT_THAT(names(phases),
              ElementsAre("build_model",
                          "build_optimizer",
                          "iteration_0.forward_backward",
                          "iteration_0.optimizer_step",
                          "iteration_1.forward_backward",
                          "iteration_1.optimizer_step",
                          "end"));
  EXPECT_EQ(log.iteration(), 2);
  const auto& forward = phases[4];
  EXPECT_EQ(forward.before.allocated_bytes, 30);
  EXPECT_EQ(forward.after.allocated_bytes, 20);
  EXPECT_EQ(forward.peak.allocated_bytes, 60);
  EXPECT_EQ(forward.peak.reserved_bytes, 120);
  EXPECT_EQ(forward.seconds, 2);
}

TEST(PhaseLog, TakesStepsOfSeveralOptimizersAsOne) {
  PhaseLog log(second(0));
  log.backward_ran();
  log.step_started(at(1, 20, 50));
  log.step_finished(at(2, 30, 35));
  log.step_started(at(3, 30, 40));
  log.step_finished(at(5, 32, 33));
  EXPECT_EQ(log.iteration(), 1);
  ASSERT_THAT(names(log.completed()), ElementsAre("build_model", "iteration_0.optimizer_step"));
  const auto& step = log.completed()[1];
  EXPECT_EQ(step.before.allocated_bytes, 20);
  EXPECT_EQ(step.after.allocated_bytes, 32);
  EXPECT_EQ(step.peak.allocated_bytes, 40);
  EXPECT_EQ(step.seconds, 3);
}

TEST(PhaseLog, CountsAClosureBeforeTheStepThatCallsIt) {
  PhaseLog log(second(0));
  log.optimizer_made(at(1, 10, 10));
  for (const int time : {3, 10}) {
    log.step_started(at(time, 10, 10));
    log.closure_started(at(time, 10, 10));
    log.backward_ran();
    log.closure_finished(at(time + 2, 20, 50));
    log.step_finished(at(time + 3, 30, 35));
  }
  const auto phases = log.completed();
  EXPECT_THAT(names(phases),
              ElementsAre("build_model",
                          "iteration_0.forward_backward",
                          "iteration_0.optimizer_step",
                          "iteration_1.forward_backward",
                          "iteration_1.optimizer_step"));
  EXPECT_EQ(phases[3].peak.allocated_bytes, 50);
  EXPECT_EQ(phases[3].seconds, 2);
  EXPECT_EQ(phases[4].peak.allocated_bytes, 35);
  EXPECT_EQ(phases[4].seconds, 1);
}

/// A backward and a step of one optimizer.
void turn(PhaseLog& log, uint64_t optimizer, int& time) {
  log.backward_ran();
  log.step_started(at(++time, 0, 0));
  log.optimizer_told(optimizer);
  log.step_finished(at(++time, 0, 0));
}

TEST(PhaseLog, TakesOptimizersThatStepInTurnForOneIteration) {
  PhaseLog log(second(0));
  log.optimizer_made(at(0, 0, 0));
  int time = 0;
  for (int iteration = 0; iteration < 3; ++iteration) {
    turn(log, 7, time);
    turn(log, 8, time);
    EXPECT_EQ(log.iteration(), iteration + 1);
  }
  const auto phases = log.completed();
  EXPECT_EQ(
      std::count_if(phases.begin(),
                    phases.end(),
                    [](const auto& phase) { return phase.name == "iteration_1.optimizer_step"; }),
      2);
  EXPECT_EQ(phases.back().name, "iteration_2.optimizer_step");
}

TEST(PhaseLog, EndsAnIterationBeforeItsFirstOptimizerStepsAgain) {
  PhaseLog log(second(0));
  log.optimizer_made(at(0, 0, 0));
  int time = 0;
  for (const uint64_t optimizer : {7, 8, 7}) turn(log, optimizer, time);
  EXPECT_EQ(log.iteration(), 1) << "the other one may step";
  turn(log, 7, time);
  EXPECT_EQ(log.iteration(), 3);
  EXPECT_EQ(log.completed().back().name, "iteration_2.optimizer_step");
}

TEST(PhaseLog, TakesClosuresOfOptimizersThatStepInTurnForOneIteration) {
  PhaseLog log(second(0));
  log.optimizer_made(at(0, 0, 0));
  for (int time = 1; time < 60; time += 5) {
    log.step_started(at(time, 0, 0));
    log.optimizer_told(time % 2 == 1 ? 7 : 8);
    log.closure_started(at(time + 1, 0, 0));
    log.backward_ran();
    log.closure_finished(at(time + 2, 0, 0));
    log.step_finished(at(time + 3, 0, 0));
  }
  EXPECT_EQ(log.iteration(), 6) << "of twelve steps";
}

TEST(PhaseLog, NamesWhatFollowsTheLastStepByWhetherItTrains) {
  PhaseLog log(second(0));
  log.backward_ran();
  log.step_started(at(1, 0, 0));
  log.step_finished(at(2, 0, 0));
  EXPECT_EQ(log.finished(at(3, 0, 0)).back().name, "end");
  log.backward_ran();
  EXPECT_EQ(log.finished(at(3, 0, 0)).back().name, "iteration_1.forward_backward");
}

TEST(PhaseLog, OfAProgramWithoutAnOptimizerHasOnePhase) {
  const PhaseLog log(second(0));
  EXPECT_THAT(names(log.finished(at(1, 1, 1))), ElementsAre("build_model"));
}

TEST(PhaseLog, OfInferenceHasNoIteration) {
  PhaseLog log(second(0));
  log.forward_started(at(1, 10, 12));
  EXPECT_FALSE(log.is_building());
  log.forward_started(at(2, 10, 30));
  EXPECT_THAT(names(log.finished(at(3, 5, 30))), ElementsAre("build_model", "forward"));
}

TEST(PhaseLog, BeginsTheFirstIterationWithoutModulesWhenTheOptimizerIsMade) {
  PhaseLog log(second(0));
  log.optimizer_made(at(1, 10, 12));
  log.step_started(at(3, 20, 50));
  log.step_finished(at(4, 30, 35));
  EXPECT_THAT(
      names(log.completed()),
      ElementsAre("build_model", "iteration_0.forward_backward", "iteration_0.optimizer_step"));
}

TEST(PhaseLog, GoesOnWithTheIterationOfAStepThatFailed) {
  PhaseLog log(second(0));
  log.optimizer_made(at(1, 10, 12));
  log.step_started(at(3, 20, 50));
  log.step_failed(at(4, 30, 35));
  EXPECT_EQ(log.iteration(), 0);
  EXPECT_EQ(log.running(), "iteration_0.forward_backward");
}

}  // namespace
}  // namespace sim
