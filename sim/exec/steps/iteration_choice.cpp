#include "sim/exec/steps/iteration_choice.h"

#include <algorithm>

namespace sim {
namespace {

/// Enough for reducers and optimizers that begin to work in another way after a warm-up.
constexpr int kMostChoicesByNeighbours = 4;

/// A forward and its backward have three times the products of a forward alone, so that the
/// evaluation of one batch makes a third more. Assumed. Other kernels do not count: where gradients
/// are set to zero and summed up, the first iteration has fewer of these.
constexpr double kManyMoreProducts = 1.2;

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
  if (running <= chosen_ + 1) ++seen_[running].calls[call];
}

void IterationChoice::multiplied(int64_t running, double multiply_adds) {
  multiply_adds_[running] += multiply_adds;
  if (running <= chosen_ + 1) ++seen_[running].products;
}

void IterationChoice::began_again(int64_t running) {
  seen_.erase(running);
  multiply_adds_.erase(running);
}

void IterationChoice::had_gone_on_until(int64_t iteration) {
  if (const auto work = multiply_adds_.extract(iteration)) {
    multiply_adds_[iteration - 1] += work.mapped();
  }
  const auto found = seen_.find(iteration);
  if (found == seen_.end()) return;
  Seen& before = seen_[iteration - 1];
  for (const auto& [call, times] : found->second.calls) before.calls[call] += times;
  before.products += found->second.products;
  seen_.erase(found);
}

bool IterationChoice::calls_more(const Seen& own, const Seen& other) {
  return std::any_of(own.calls.begin(), own.calls.end(), [&](const auto& call) {
    const auto found = other.calls.find(call.first);
    return found == other.calls.end() || found->second < call.second;
  });
}

/// Of an iteration without products it was not seen where it began.
bool IterationChoice::multiplies_more(const Seen& own, const Seen& other) {
  const auto most = kManyMoreProducts * static_cast<double>(other.products);
  return other.products > 0 && static_cast<double>(own.products) > most;
}

void IterationChoice::compare(int64_t next) {
  const Seen& own = seen_[chosen_];
  if (next == chosen_ + 1 && chosen_ > 0) {
    facts_.has_other_calls = calls_more(own, seen_[chosen_ - 1]);
    facts_.multiplies_more = multiplies_more(own, seen_[chosen_ - 1]);
  }
  if (next == chosen_ + 2) {
    facts_.has_other_calls = own.calls != seen_[chosen_ + 1].calls;
    facts_.multiplies_more = multiplies_more(own, seen_[chosen_ + 1]);
  }
  compare_later_work(next);
  const int64_t first_compared = std::min(chosen_, next - 1) - 1;
  seen_.erase(seen_.begin(), seen_.lower_bound(first_compared));
}

/// One alone evaluates, perhaps.
void IterationChoice::compare_later_work(int64_t next) {
  const double most = kManyMoreProducts * multiply_adds_[chosen_];
  const double both = std::min(multiply_adds_[next - 1], multiply_adds_[next - 2]);
  if (next > chosen_ + 2 && most > 0 && both > most) facts_.later_ones_multiply_more = true;
  std::erase_if(multiply_adds_,
                [&](const auto& work) { return work.first < next - 2 && work.first != chosen_; });
}

bool IterationChoice::iteration_began(int64_t next) {
  if (next <= chosen_ || (steps_ > 0 && next >= steps_)) return false;
  const bool lacks_graph = graph_is_launched_later_ && !facts_.launches_graph;
  if (facts_.is_usual() && !lacks_graph) return false;
  IterationFacts others = facts_;
  others.has_other_calls = others.multiplies_more = false;
  const bool is_by_neighbours = others.is_usual() && !lacks_graph;
  if (is_by_neighbours && ++choices_by_neighbours_ > kMostChoicesByNeighbours) return false;
  chosen_ = next;
  facts_ = {};
  graph_is_launched_later_ = false;
  return true;
}

}  // namespace sim
