// What a program does between a backward and its next forward or step: it sums gradients over
// ranks, scales and clips them. No program announces that.
#pragma once

#include <cstdint>

namespace sim {

/// The next forward shows by a module that is entered or by a node that autograd makes: a forward
/// is there to be differentiated. Nodes have numbers that grow, apart for each thread; the one that
/// comes next on the main thread is `next_node`.
class AfterBackward {
 public:
  /// A node runs, on any thread.
  void node_ran() { part_ = Part::kBackward; }
  void forward_begins() { part_ = Part::kForward; }
  /// Called on the main thread before an operator makes its node.
  void operator_starts(uint64_t next_node) {
    if (part_ == Part::kBackward) {
      part_ = Part::kAfter;
      next_node_ = next_node;
    } else if (next_node != next_node_) {
      part_ = Part::kForward;
    }
  }

  /// Whether a backward was the last that ran.
  bool is_here() const { return part_ != Part::kForward; }
  /// The same on the main thread, which may have made a node since its operator started.
  bool is_here(uint64_t next_node) const {
    return part_ == Part::kBackward || (part_ == Part::kAfter && next_node == next_node_);
  }

 private:
  enum class Part { kForward, kBackward, kAfter };
  Part part_ = Part::kForward;
  uint64_t next_node_ = 0;  // when the first operator after the backward started
};

}  // namespace sim
