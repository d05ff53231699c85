// Where one thread is in the run: in which module, in which direction, in which operator.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "estimator/profile/run_observer.h"
#include "sim/tracking/module_tree.h"
#include "sim/tracking/operator_call.h"

namespace sim {

struct Place {
  ModuleId module = kRootModule;
  estimator::Direction direction = estimator::Direction::kForward;
  int64_t micro_batch = estimator::kNoMicroBatch;
};

/// An entered module, direction or backward node.
struct Scope {
  Place place;
  int64_t forward_since = -1;  ///< of a forward or recompute: the memory event that it began at
};

/// Which module made which autograd node, for the nodes of one forward thread.
///
/// A node takes the next number of its thread's sequence when it is made. Noting the next number
/// whenever the module changes therefore tells every node's module, whatever made it, a custom
/// function too.
class ForwardNodes {
 public:
  /// Nodes from number `next_node` on are made by `module`.
  void module_changed(uint64_t next_node, ModuleId module);
  /// Empty when the node was made before the first change that was noted.
  std::optional<ModuleId> module_of(uint64_t node) const;
  void clear() { changes_.clear(); }

 private:
  struct Change {
    uint64_t first_node;
    ModuleId module;
  };
  std::vector<Change> changes_;  // ascending
};

/// An operator that is running, and the operators that it called.
struct OperatorFrame {
  bool is_part_of_kernel = false;  ///< not counted; call.op is the kernel's
  bool called_a_counted = false;   ///< it, or what it called, has been counted
  OperatorCall call;
};

class OperatorStack {
 public:
  bool empty() const { return depth_ == 0; }
  OperatorFrame& top() { return frames_[depth_ - 1]; }
  /// A frame of an earlier call is used again: its shapes keep their memory.
  OperatorFrame& push();
  void pop() { --depth_; }

  /// The kernel that runs, or null.
  const OperatorTraits* kernel() const;
  /// The kernel, or the innermost operator that computes; if all are views and allocations, the
  /// innermost; or null.
  const OperatorTraits* at_work() const;

 private:
  std::vector<OperatorFrame> frames_;
  size_t depth_ = 0;
};

struct ThreadPlaces {
  explicit ThreadPlaces(uint64_t id) : thread_id(id) {}

  const uint64_t thread_id;  ///< at::RecordFunction::currentThreadId()
  std::vector<Scope> scopes;
  ForwardNodes forward_nodes;
  bool ran_nodes = false;  ///< of autograd; outside them it still works for backward
  OperatorStack operators;
  std::vector<uint64_t> made_in_operators;  ///< blocks, since the outermost operator began
};

}  // namespace sim
