// Which iteration of a program is recorded.
#pragma once

#include <cstdint>

namespace sim {

/// What an iteration contains beside the program's own work, or lacks.
struct IterationFacts {
  /// Code was compiled, or kernels were loaded that had been. torch.compile and Triton then launch
  /// kernels to time them.
  bool compiles = false;
  bool captures_graph = false;   ///< a CUDA graph
  bool launches_graph = false;   ///< the same
  bool has_other_steps = false;  ///< where it ended was seen only in the next one

  bool is_usual() const { return !compiles && !captures_graph && !has_other_steps; }
};

/// Chooses the second iteration, the first one behind the first-time costs. If that contains
/// something that other iterations do not, or if CUDA graphs are launched later and not in it, the
/// next iteration is chosen again, as long as there may be one.
class IterationChoice {
 public:
  /// The program is ended after so many iterations; 0: nobody knows when.
  explicit IterationChoice(int64_t steps) : steps_(steps), chosen_(steps == 1 ? 0 : 1) {}

  /// Number of the chosen iteration, from 0.
  int64_t chosen() const { return chosen_; }
  const IterationFacts& facts() const { return facts_; }

  // In the iteration that is running now.
  void compiled(int64_t running);
  void graph_captured(int64_t running);
  void graph_launched(int64_t running);
  void had_other_steps(int64_t iteration);

  /// Iterations end, and `next` begins. True if that one is chosen now.
  bool iteration_began(int64_t next);

 private:
  int64_t steps_;
  int64_t chosen_;
  IterationFacts facts_;
  bool graph_is_launched_later_ = false;
};

}  // namespace sim
