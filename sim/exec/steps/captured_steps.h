// Backwards and optimizer steps that CUDA graphs captured: they happen at each launch of their
// graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace sim {

/// Not thread-safe. Graphs have the virtual GPU's numbers, from 1.
class CapturedSteps {
 public:
  void capture_began(uint64_t graph) {
    capture_ = graph;
    has_graphs_ = true;
  }
  void capture_ended() { capture_ = 0; }
  bool is_capturing() const { return capture_ != 0; }
  /// Whether there ever was a graph.
  bool has_graphs() const { return has_graphs_; }

  /// The step that is captured is that of the optimizer with this key. Of several calls for one
  /// graph the first counts.
  void optimizer_told(uint64_t key) { optimizers_.try_emplace(capture_, key); }

  /// A node of autograd runs.
  void backward_ran() {
    if (is_capturing()) backwards_.insert(capture_);
  }
  bool has_backward(uint64_t graph) const { return backwards_.count(graph) != 0; }

  /// The optimizer that `graph` steps, if it does.
  std::optional<uint64_t> optimizer_of(uint64_t graph) const {
    const auto found = optimizers_.find(graph);
    return found == optimizers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  uint64_t capture_ = 0;  // the graph whose capture runs; 0: none
  bool has_graphs_ = false;
  std::map<uint64_t, uint64_t> optimizers_;  // by graph
  std::set<uint64_t> backwards_;             // graphs that have one
};

}  // namespace sim
