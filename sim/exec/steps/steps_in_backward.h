// Optimizer steps that a program makes inside a backward: each parameter has an optimizer of its
// own, which steps as soon as the gradient is there, so that the gradient can be freed before the
// next one is made (torch's register_post_accumulate_grad_hook).
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace sim {

/// Takes all steps inside one backward for one step, which ends with that backward. Functions may
/// be called from any thread.
class StepsInBackward {
 public:
  /// `all_taken` is called by the thread that ends a backward with such steps.
  explicit StepsInBackward(std::function<void()> all_taken) : all_taken_(std::move(all_taken)) {}

  // A node of a backward starts, or has ended, on this thread.
  void node_started();
  void node_finished();
  /// Whether the step that this thread begins is inside a backward.
  bool take_step();

 private:
  void await_end();

  std::function<void()> all_taken_;
  std::mutex mutex_;
  bool is_taken_ = false;
  bool is_awaited_ = false;
};

}  // namespace sim
