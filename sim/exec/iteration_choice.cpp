#include "sim/exec/iteration_choice.h"

#include <algorithm>

namespace sim {
namespace {

/// Enough for reducers and optimizers that begin to work in another way after a warm-up.
constexpr int kMostChoicesByCalls = 4;

}  // namespace

void IterationChoice::backward_ran(int64_t running) {
  if (running == chosen_) facts_.runs_backward = true;
}

void IterationChoice::compiled(int64_t running) {
  if (running == chosen_) facts_.compiles = true;
}

void IterationChoice::graph_captured(int64_t running) {
  if (running == chosen_) facts_.captures_graph = true;
}

void IterationChoice::graph_launched(int64_t running) {
  if (running == chosen_) facts_.launches_graph = true;
  if (running > chosen_) graph_is_launched_later_ = true;
}

void IterationChoice::had_other_steps(int64_t iteration) {
  if (iteration == chosen_) facts_.has_other_steps = true;
}

void IterationChoice::called(int64_t running, const CalledCollective& call) {
  if (running <= chosen_ + 1) ++calls_[running][call];
}

void IterationChoice::compare_calls(int64_t next) {
  const Calls& own = calls_[chosen_];
  if (next == chosen_ + 1 && chosen_ > 0) {
    const Calls& before = calls_[chosen_ - 1];
    facts_.has_other_calls = std::any_of(own.begin(), own.end(), [&](const auto& call) {
      const auto found = before.find(call.first);
      return found == before.end() || found->second < call.second;
    });
  }
  if (next == chosen_ + 2) facts_.has_other_calls = own != calls_[chosen_ + 1];
  const int64_t first_compared = std::min(chosen_, next - 1) - 1;
  calls_.erase(calls_.begin(), calls_.lower_bound(first_compared));
}

bool IterationChoice::iteration_began(int64_t next) {
  if (next <= chosen_ || (steps_ > 0 && next >= steps_)) return false;
  const bool lacks_graph = graph_is_launched_later_ && !facts_.launches_graph;
  if (facts_.is_usual() && !lacks_graph) return false;
  IterationFacts others = facts_;
  others.has_other_calls = false;
  const bool is_by_calls = others.is_usual() && !lacks_graph;
  if (is_by_calls && ++choices_by_calls_ > kMostChoicesByCalls) return false;
  chosen_ = next;
  facts_ = {};
  graph_is_launched_later_ = false;
  return true;
}

}  // namespace sim
