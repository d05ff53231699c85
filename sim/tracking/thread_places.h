// Where one thread is in the run: in which module, direction and operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  int64_t chunk = estimator::kNoChunk;
  int64_t stream = estimator::kMainStream;
};

/// An entered module, direction or backward node.
struct Scope {
  Place place;
  int64_t forward_since = -1;  ///< of a forward or recompute: memory event at its start
};

/// Finds the module that made an autograd node, for the nodes of one forward thread.
///
/// When a node is made, it takes the next number of its thread's sequence. So it is enough to note
/// the next number whenever the module changes. This works for all nodes, also those of custom
/// functions.
class ForwardNodes {
 public:
  /// Nodes from number `next_node` on are made by `module`.
  void module_changed(uint64_t next_node, ModuleId module);
  /// Empty if the node was made before the first noted change.
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
  bool called_a_counted = false;   ///< this operator, or one that it called, has been counted
  OperatorCall call;
};

class OperatorStack {
 public:
  bool empty() const { return depth_ == 0; }
  OperatorFrame& top() { return frames_[depth_ - 1]; }
  /// Reuses the frame of an earlier call, whose shapes keep their memory.
  OperatorFrame& push();
  void pop() { --depth_; }

  /// The operator whose kernel runs, or null.
  const OperatorTraits* kernel() const;
  /// The operator whose kernel runs, or else the innermost operator that computes, or else (if all
  /// are views and allocations) the innermost operator, or null.
  const OperatorTraits* at_work() const;

 private:
  std::vector<OperatorFrame> frames_;
  size_t depth_ = 0;
};

/// What a thread has begun since its event before.
struct BegunWork {
  int64_t operators = 0;            ///< as in OrderEvents
  std::vector<std::string> ranges;  ///< names
};

struct ThreadPlaces {
  explicit ThreadPlaces(uint64_t id) : thread_id(id) {}

  const uint64_t thread_id;  ///< at::RecordFunction::currentThreadId()
  std::vector<Scope> scopes;
  ForwardNodes forward_nodes;
  bool ran_nodes = false;        ///< of autograd; between nodes it still belongs to backward
  BegunWork begun;               ///< since its last event, while recording
  int64_t dispatches_again = 0;  ///< ranges in which the host dispatches each operator twice
  OperatorStack operators;
  std::vector<uint64_t> made_in_operators;  ///< blocks, since the outermost operator began
};

}  // namespace sim
