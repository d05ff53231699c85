#include "sim/exec/iteration_choice.h"

namespace sim {

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

bool IterationChoice::iteration_began(int64_t next) {
  if (next <= chosen_ || (steps_ > 0 && next >= steps_)) return false;
  const bool lacks_graph = graph_is_launched_later_ && !facts_.launches_graph;
  if (facts_.is_usual() && !lacks_graph) return false;
  chosen_ = next;
  facts_ = {};
  graph_is_launched_later_ = false;
  return true;
}

}  // namespace sim
