#include "sim/exec/program_callbacks.h"

#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/Logging.h>
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/exec/values/drawn_integers.h"
#include "sim/exec/values/joined_tensors.h"
#include "sim/exec/values/operator_facts.h"
#include "sim/exec/values/running_operators.h"
#include "sim/tracking/tensors_in.h"

namespace sim {
namespace {

/// torch's callbacks are plain functions. Null in a process that was forked.
ProgramRecorder* recorder = nullptr;

/// The range that torch.optim.Optimizer opens around every step: "Optimizer.step#AdamW.step".
constexpr std::string_view kOptimizerStep = "Optimizer.step#";
/// Logged once, by the first optimizer that is made.
constexpr std::string_view kOptimizerMade = "python.optimizer";

/// How many of the operators that run on this thread are closed.
thread_local int closed_operators = 0;
/// Which of them are, outermost first.
thread_local std::vector<bool> are_closed;

using Context = std::unique_ptr<at::ObserverContext>;

struct ObservedOperator final : at::ObserverContext {
  std::vector<MemoryRange> written;
  uint64_t start_time = 0;
  std::unique_ptr<HostCall> on_host;
  std::unique_ptr<JoinedTensors> joined;
  std::unique_ptr<DrawnIntegers> drawn;
  std::unique_ptr<Assumptions::Call> assumed;
  int closed_around = 0;                   // of an operator that reads back
  const int64_t* answer_around = nullptr;  // the same
};
struct RunningStep final : at::ObserverContext {};
/// An operator of what torch.compile traces with sizes that it does not know: it computes nothing.
struct SymbolicOperator final : at::ObserverContext {};

/// Of a function of autograd in Python, or of compiled code.
Context function_started(const at::RecordFunction& range) {
  recorder->range_started(range.name());
  CompiledSteps& steps = recorder->compiled_steps();
  if (!steps.holds(range.name())) return nullptr;
  recorder->step_started();
  steps.started();
  return std::make_unique<RunningStep>();
}

void compiled_region_finished() {
  recorder->compiled_steps().finished();
  recorder->step_finished();
}

/// Whether Python carries the operator out, and may do other things then: that of a tensor with a
/// __torch_dispatch__ of its own (a DTensor's random numbers make the generators of all ranks
/// equal), or of a TorchDispatchMode.
bool runs_python(c10::ArrayRef<c10::IValue> inputs) {
  if (c10::impl::TorchDispatchModeTLS::any_modes_set()) return true;
  bool found = false;
  for (const c10::IValue& input : inputs) {
    for_each_tensor(input, [&](const at::Tensor& tensor) {
      found = found || tensor.key_set().has(c10::DispatchKey::Python);
    });
  }
  return found;
}

/// What an operator reads back is followed, also in a closed one.
void start_reading_back(ObservedOperator& running, const VirtualGpu& gpu) {
  running.closed_around = std::exchange(closed_operators, 0);
  if (running.closed_around > 0) gpu.remember_here(1);
  const int64_t* const own = running.on_host == nullptr ? nullptr : running.on_host->answer();
  running.answer_around = gpu.answer_here(own);
  if (own == nullptr) gpu.answer_here(running.answer_around);  // item() of what a kernel counted
}

void end_reading_back(const ObservedOperator& running, const VirtualGpu& gpu) {
  gpu.answer_here(running.answer_around);
  closed_operators = running.closed_around;
  if (closed_operators > 0) gpu.remember_here(0);
}

Context operator_started(const at::RecordFunction& function) {
  if (recorder == nullptr || is_own_work()) return nullptr;
  const OperatorFacts& facts = facts_of(function);
  if (!facts.is_operator) return function_started(function);
  const auto inputs = function.inputs();
  if (std::any_of(inputs.begin(), inputs.end(), is_symbolic)) {
    return std::make_unique<SymbolicOperator>();
  }
  recorder->operator_started(function, facts);
  const VirtualGpu& gpu = recorder->gpu();
  if (!gpu) return nullptr;
  const bool is_followed = closed_operators == 0 || facts.reads_back;
  are_closed.push_back(facts.writes.is_closed && !runs_python(inputs));
  if (are_closed.back() && closed_operators++ == 0) gpu.remember_here(0);
  ObservedOperator running;
  if (is_followed) {  // else all of it is forgotten, or followed, with the closed operator
    running.on_host = HostCall::prepare(function, facts.on_host, gpu);
    if (facts.joins_tensors && running.on_host == nullptr) {
      running.joined = JoinedTensors::prepare(function, gpu);
    }
    if (facts.draws_integers) running.drawn = DrawnIntegers::prepare(function, gpu);
    for_each_memory(function.inputs(), facts.writes.arguments, [&](const MemoryRange& range) {
      running.written.push_back(range);
    });
  }
  if (facts.assumption != nullptr) {
    running.assumed = recorder->assumptions().operator_started(function, *facts.assumption, gpu);
  }
  if (facts.reads_back) start_reading_back(running, gpu);
  const bool is_of_interest = facts.reads_back || running.on_host != nullptr ||
                              running.joined != nullptr || running.drawn != nullptr ||
                              running.assumed != nullptr || !running.written.empty();
  if (!is_of_interest) return nullptr;
  running.start_time = gpu.clock();
  return std::make_unique<ObservedOperator>(std::move(running));
}

constexpr uint64_t kEver = UINT64_MAX;

/// A kernel may have written: what is known of it is what the host can follow.
void follow_values(const at::RecordFunction& function,
                   const at::ObserverContext& context,
                   bool computes,
                   const VirtualGpu& gpu) {
  const auto& running = static_cast<const ObservedOperator&>(context);
  const uint64_t before = computes ? kEver : running.start_time;
  for (const MemoryRange& range : running.written) {
    gpu.forget(range.address, range.bytes, before);
    if (computes) recorder->memory_written(range);
  }
  if (running.on_host != nullptr) {
    if (!running.on_host->has_sizes_of(function.outputs())) recorder->refuse_count(function.name());
    running.on_host->finish(function.outputs(), gpu);
  }
  if (running.joined != nullptr) running.joined->finish(function.outputs(), gpu);
  if (running.drawn != nullptr) running.drawn->finish(gpu);
  if (running.assumed != nullptr) {
    recorder->assume(function, *running.assumed);
  }
}

void operator_finished(const at::RecordFunction& function, at::ObserverContext* context) {
  if (recorder == nullptr || is_own_work()) return;
  const OperatorFacts& facts = facts_of(function);
  if (!facts.is_operator) {
    if (context != nullptr) compiled_region_finished();
    return;
  }
  if (dynamic_cast<const SymbolicOperator*>(context) != nullptr) return;
  recorder->operator_finished(function);
  const VirtualGpu& gpu = recorder->gpu();
  if (!gpu) return;
  if (facts.reads_back && context != nullptr) {
    end_reading_back(static_cast<const ObservedOperator&>(*context), gpu);
  }
  const OperatorWrites& writes = facts.writes;
  const bool is_closed = !are_closed.empty() && are_closed.back();
  if (!are_closed.empty()) are_closed.pop_back();
  if (is_closed && --closed_operators == 0) gpu.remember_here(1);
  // What a closed one wrote was not remembered, and its results are in memory that was given out
  // since, which is forgotten then.
  if (writes.computes && !is_closed) {
    for_each_memory(function.outputs(), writes.results, [&](const MemoryRange& range) {
      gpu.forget(range.address, range.bytes, kEver);
    });
  }
  if (context != nullptr) follow_values(function, *context, writes.computes, gpu);
}

Context node_started(const at::RecordFunction& node) {
  if (recorder == nullptr) return nullptr;
  recorder->steps_in_backward().node_started();
  recorder->node_started(node);
  return nullptr;
}

void node_finished(const at::RecordFunction&, at::ObserverContext*) {
  if (recorder == nullptr) return;
  recorder->node_finished();
  recorder->steps_in_backward().node_finished();
}

Context range_started(const at::RecordFunction& range) {
  if (recorder == nullptr) return nullptr;
  recorder->range_started(range.name());
  if (!std::string_view(range.name()).starts_with(kOptimizerStep)) return nullptr;
  if (recorder->steps_in_backward().take_step()) return nullptr;
  recorder->step_started();
  return std::make_unique<RunningStep>();
}

void range_finished(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr && recorder != nullptr) recorder->step_finished();
}

}  // namespace

void install_program_callbacks(ProgramRecorder& process_recorder) {
  using at::RecordFunctionCallback;
  using at::RecordScope;
  // What is locked in another thread while the program forks stays locked in the child.
  pthread_atfork(nullptr, nullptr, [] { recorder = nullptr; });
  recorder = &process_recorder;
  at::addGlobalCallback(RecordFunctionCallback(operator_started, operator_finished)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({RecordScope::FUNCTION}));
  at::addGlobalCallback(
      RecordFunctionCallback(node_started, node_finished).scopes({RecordScope::BACKWARD_FUNCTION}));
  at::addGlobalCallback(
      RecordFunctionCallback(range_started, range_finished).scopes({RecordScope::USER_SCOPE}));
  c10::SetAPIUsageLogger([](const std::string& event) {
    if (event == kOptimizerMade && recorder != nullptr) recorder->optimizer_made();
  });
}

}  // namespace sim
