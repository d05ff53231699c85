#include "sim/exec/steps/steps_in_backward.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

namespace sim {
namespace {

using torch::autograd::get_current_graph_task_id;

constexpr int kNone = -1;  // as torch numbers backwards

// A node may run a backward of its own (torch.utils.checkpoint with use_reentrant), and wait for
// it.
thread_local int running_nodes = 0;
thread_local int outermost_backward = kNone;

}  // namespace

/// A step that was taken in a node's own backward waits for the end of the outermost one, which the
/// next node of that can ask for.
void StepsInBackward::node_started() {
  if (running_nodes++ > 0) return;
  outermost_backward = get_current_graph_task_id();
  const std::lock_guard lock(mutex_);
  if (is_taken_) await_end();
}

void StepsInBackward::node_finished() { --running_nodes; }

bool StepsInBackward::take_step() {
  const int backward = get_current_graph_task_id();
  if (backward == kNone) return false;
  const std::lock_guard lock(mutex_);
  is_taken_ = true;
  if (running_nodes == 0 || backward == outermost_backward) await_end();
  return true;
}

void StepsInBackward::await_end() {
  if (is_awaited_) return;
  is_awaited_ = true;
  torch::autograd::Engine::get_default_engine().queue_callback([this] {
    {
      const std::lock_guard lock(mutex_);
      is_taken_ = is_awaited_ = false;
    }
    all_taken_();
  });
}

}  // namespace sim
