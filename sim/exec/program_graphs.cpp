// What the recorder knows of the program's CUDA graphs.

#include <optional>

#include "sim/exec/program_recorder.h"

namespace sim {

void ProgramRecorder::capture_began(uint64_t graph) {
  const std::lock_guard lock(mutex_);
  captured_steps_.capture_began(graph);
  recorded_.choice().graph_captured(phases_.iteration());
}

void ProgramRecorder::capture_ended() {
  const std::lock_guard lock(mutex_);
  captured_steps_.capture_ended();
}

/// A graph may hold a whole iteration, whose backward autograd then does not run.
void ProgramRecorder::graph_launched() {
  backward_runs();
  const std::lock_guard lock(mutex_);
  recorded_.choice().graph_launched(phases_.iteration());
}

void ProgramRecorder::graph_has_run(uint64_t graph) {
  std::optional<uint64_t> optimizer;
  {
    const std::lock_guard lock(mutex_);
    optimizer = captured_steps_.optimizer_of(graph);
    if (captured_steps_.has_backward(graph)) tracker_.backward_ran();
  }
  if (!optimizer) return;
  step_started();
  optimizer_told(*optimizer);
  step_finished();
}

/// Nothing happens before its graph is launched, and what it leaves then nobody knows.
void ProgramRecorder::capture_call(const onerank_nccl_call& call,
                                   const CollectiveLog::Key& key,
                                   uint64_t mark) {
  {
    const std::lock_guard lock(mutex_);
    captured_calls_.emplace(mark, key);
  }
  tell_tracker([&] { trace_.nccl_called(call, gpu_.stream_number(call.stream), mark); });
}

void ProgramRecorder::captured_call_runs(uint64_t mark) {
  std::optional<CollectiveLog::Key> call;
  {
    const std::lock_guard lock(mutex_);
    const auto captured = captured_calls_.find(mark);
    if (captured != captured_calls_.end()) call = captured->second;
  }
  if (call) count_call(*call);
}

}  // namespace sim
