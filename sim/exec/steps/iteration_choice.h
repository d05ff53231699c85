// Which iteration of a program is recorded.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

namespace sim {

/// What an iteration contains beside the program's own work, or lacks.
struct IterationFacts {
  /// Code was compiled, or kernels were loaded that had been. torch.compile and Triton then launch
  /// kernels to time them.
  bool compiles = false;
  bool captures_graph = false;   ///< a CUDA graph
  bool launches_graph = false;   ///< the same
  bool has_other_steps = false;  ///< where it ended was seen only in the next one
  /// It called collectives that the iteration before it did not call, or not the same ones as the
  /// iteration behind it (DistributedDataParallel rebuilds its buckets once).
  bool has_other_calls = false;
  /// It had many more products than an iteration beside it: the program evaluated, or generated.
  bool multiplies_more = false;
  /// Two behind it, one after the other, multiplied much more: batches, texts or models grew.
  bool later_ones_multiply_more = false;
  bool runs_backward = false;  ///< a node of autograd, or a CUDA graph

  bool is_usual() const {
    return !compiles && !captures_graph && !has_other_steps && !has_other_calls && !multiplies_more;
  }
};

/// A call of NCCL, as far as it tells iterations apart.
struct CalledCollective {
  int64_t communicator = 0;
  std::string kind;
  int64_t bytes = 0;
  auto operator<=>(const CalledCollective&) const = default;
};

/// Chooses the second iteration, the first one behind the first-time costs. If that contains
/// something that other iterations do not, or if CUDA graphs are launched later and not in it, the
/// next iteration is chosen again, as long as there may be one. Because of its neighbours'
/// collectives and products that happens a few times at most: those of some programs differ in
/// every iteration.
class IterationChoice {
 public:
  /// The program is ended after so many iterations; 0: nobody knows when.
  explicit IterationChoice(int64_t steps) : steps_(steps), chosen_(steps == 1 ? 0 : 1) {}

  /// Number of the chosen iteration, from 0.
  int64_t chosen() const { return chosen_; }
  const IterationFacts& facts() const { return facts_; }

  // In the iteration that is running now.
  void backward_ran(int64_t running);
  void compiled(int64_t running);
  void graph_captured(int64_t running);
  void graph_launched(int64_t running);
  void had_other_steps(int64_t iteration);
  void called(int64_t running, const CalledCollective& call);
  /// A product, a convolution or attention, outside the steps of optimizers, with so many
  /// multiply-adds; 0: unknown.
  void multiplied(int64_t running, double multiply_adds);
  /// What was called and multiplied in it does not count.
  void began_again(int64_t running);
  /// What was called and multiplied in `iteration` belongs to the one before.
  void had_gone_on_until(int64_t iteration);

  /// `next` will begin: compares the chosen iteration, if it has ended, with its neighbours. Called
  /// before iteration_began(); both may be called again for the same `next`, as a step may follow
  /// that turns out to be of the iteration that had ended.
  void compare(int64_t next);

  /// Iterations end, and `next` begins. True if that one is chosen now.
  bool iteration_began(int64_t next);

 private:
  int64_t steps_;
  int64_t chosen_;
  IterationFacts facts_;
  struct Seen {
    std::map<CalledCollective, int64_t> calls;  // how often each was called
    int64_t products = 0;
  };
  static bool calls_more(const Seen& own, const Seen& other);
  static bool multiplies_more(const Seen& own, const Seen& other);
  void compare_later_work(int64_t next);

  bool graph_is_launched_later_ = false;
  std::map<int64_t, Seen> seen_;             // by iteration
  std::map<int64_t, double> multiply_adds_;  // of the chosen one and the last ones
  int choices_by_neighbours_ = 0;
};

}  // namespace sim
