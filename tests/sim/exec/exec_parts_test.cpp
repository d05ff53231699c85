// The parts of an iteration that no program announces: what follows a backward, evaluations, and
// what a CUDA graph does again.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "estimator/base/fields.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::Trace;
using estimator::TraceEventKind;
using estimator::TraceLaunch;
using estimator::TraceWork;
using estimator::WorkKind;
using testing::Each;
using testing::SizeIs;

class ExecParts : public ExecProgram {
 protected:
  /// The directions of the launches of which `is_wanted` is true, in their order.
  template <class IsWanted>
  static std::vector<Direction> directions(const Trace& trace, const IsWanted& is_wanted) {
    std::vector<Direction> found;
    for (const TraceLaunch& launch : trace.launches()) {
      if (is_wanted(launch)) found.push_back(static_cast<Direction>(launch.direction));
    }
    return found;
  }
  Trace of_gradients(const std::vector<std::string>& arguments);
  Trace of_collectives(const std::vector<std::string>& arguments);
};

Trace ExecParts::of_gradients(const std::vector<std::string>& arguments) {
  const std::string file = path("estimate.json");
  const ProgramResult result =
      run(command("averages_gradients.py", {"--world-size", "8", "--estimate", file}, arguments));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const auto estimate = estimator::parse_json(estimator::read_file(file), file);
  EXPECT_EQ(estimate.at("throughput").at("tokens_per_step"), 8 * 2 * 2 * 128);
  return profile(0).trace.value();
}

// The gradient of the middle layer is as large as activations may be.
TEST_F(ExecParts, WhatFollowsABackwardIsNoForward) {
  for (const char* kind : {"modules", "functional"}) {
    const Trace trace = of_gradients({kind});
    const auto between = directions(trace, [&](const TraceLaunch& launch) {
      const TraceWork& work = trace.work_of(launch);
      return work.kind == WorkKind::kCollective || work.operator_name == "aten::_foreach_norm" ||
             work.operator_name == "aten::_foreach_mul_" || work.operator_name == "aten::div_";
    });
    EXPECT_THAT(between, SizeIs(testing::Ge(3 + 3 + 1 + 1))) << kind;
    EXPECT_THAT(between, Each(Direction::kReduceGradients)) << kind;
    const auto products = directions(trace, [&](const TraceLaunch& launch) {
      return trace.work_of(launch).kind == WorkKind::kProduct && !launch.is_evaluation;
    });
    const auto forward = std::count(products.begin(), products.end(), Direction::kForward);
    const auto backward = std::count(products.begin(), products.end(), Direction::kBackward);
    EXPECT_EQ(forward, kind == std::string("modules") ? 2 * 2 + 2 * 2 : 2 * 2) << kind;
    EXPECT_EQ(backward, 2 * 4) << kind;
    EXPECT_THAT(products, SizeIs(forward + backward)) << kind;
  }
}

// Models that are not trained are a part of the training.
TEST_F(ExecParts, ATrainedModelWithoutGradientsIsEvaluated) {
  const Trace trace = of_gradients({});
  const auto evaluated = directions(trace, [&](const TraceLaunch& launch) {
    return launch.is_evaluation && trace.work_of(launch).kind == WorkKind::kProduct;
  });
  EXPECT_THAT(evaluated, testing::ElementsAre(Direction::kForward, Direction::kForward));
  EXPECT_THAT(trace.evaluations, SizeIs(1));
}

Trace ExecParts::of_collectives(const std::vector<std::string>& arguments) {
  const ProgramResult result =
      run_program("graph_of_collectives.py", {"--world-size", "4"}, arguments);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return profile(0).trace.value();
}

/// What tells launches apart, without their streams.
using Launched = std::tuple<WorkKind, std::string, int64_t, int64_t>;

std::vector<Launched> launched(const Trace& trace) {
  std::vector<Launched> found;
  for (const TraceLaunch& launch : trace.launches()) {
    const TraceWork& work = trace.work_of(launch);
    found.emplace_back(work.kind, work.name, work.bytes, launch.direction);
  }
  return found;
}

TEST_F(ExecParts, AGraphLaunchesItsCollectivesAgain) {
  const Trace eager = of_collectives({});
  const auto calls = profile(0).program->communicators.at(0).calls;
  const Trace graph = of_collectives({"graph"});
  const auto calls_of_graph = profile(0).program->communicators.at(0).calls;
  EXPECT_EQ(launched(graph), launched(eager));
  ASSERT_EQ(calls_of_graph.size(), calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls_of_graph[i].count, calls[i].count) << calls[i].kind;
    EXPECT_EQ(calls_of_graph[i].iteration_count, calls[i].iteration_count) << calls[i].kind;
  }
}

// The first all-reduce has a stream of its own, which waits for the backward and is waited for.
TEST_F(ExecParts, AGraphKeepsItsBranches) {
  const Trace graph = of_collectives({"graph"});
  const auto& events = graph.events;
  const auto event = [&](const auto& is_wanted) {
    std::size_t i = 0;
    while (i < events.kind.size() && !is_wanted(i)) ++i;
    return i;
  };
  const auto is = [&](std::size_t i, TraceEventKind kind) {
    return events.kind[i] == static_cast<int64_t>(kind);
  };
  const std::size_t beside = event([&](std::size_t i) {
    return is(i, TraceEventKind::kLaunch) &&
           graph.works[static_cast<std::size_t>(events.item[i])].kind == WorkKind::kCollective;
  });
  ASSERT_LT(beside, events.kind.size());
  const int64_t branch = events.stream[beside], main = events.stream[0];
  EXPECT_NE(branch, main);
  const std::size_t forked = event([&](std::size_t i) {
    return is(i, TraceEventKind::kStreamWait) && events.stream[i] == branch;
  });
  EXPECT_LT(forked, beside);
  const std::size_t recorded = event([&](std::size_t i) {
    return i > beside && is(i, TraceEventKind::kRecord) && events.stream[i] == branch;
  });
  const std::size_t joined = event([&](std::size_t i) {
    return i > beside && is(i, TraceEventKind::kStreamWait) && events.stream[i] == main &&
           recorded < events.kind.size() && events.item[i] == events.item[recorded];
  });
  EXPECT_LT(joined, events.kind.size());
}

}  // namespace
}  // namespace sim
