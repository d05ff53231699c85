#include "sim/exec/program_callbacks.h"

#include <ATen/record_function.h>
#include <c10/util/Logging.h>
#include <pthread.h>

#include <memory>
#include <string_view>

#include "sim/exec/operator_facts.h"

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

using Context = std::unique_ptr<at::ObserverContext>;

struct RunningOperator final : at::ObserverContext {
  std::vector<MemoryRange> written;
  uint64_t start_time = 0;
  std::unique_ptr<HostCall> on_host;
  std::unique_ptr<Assumptions::Call> assumed;
};
struct RunningStep final : at::ObserverContext {};

Context operator_started(const at::RecordFunction& function) {
  if (recorder == nullptr) return nullptr;
  const OperatorFacts& facts = facts_of(function);
  if (!facts.is_operator) return nullptr;
  recorder->operator_started(function, facts);
  const VirtualGpu& gpu = recorder->gpu();
  if (!gpu) return nullptr;
  const bool is_inside = closed_operators > 0;
  if (facts.writes.is_closed && closed_operators++ == 0) gpu.remember_here(0);
  std::unique_ptr<HostCall> on_host;
  std::vector<MemoryRange> written;
  if (!is_inside) {  // else all of it is forgotten, or followed, with the closed operator
    on_host = HostCall::prepare(function, facts.on_host, gpu);
    for_each_memory(function.inputs(), facts.writes.arguments, [&](const MemoryRange& range) {
      written.push_back(range);
    });
  }
  std::unique_ptr<Assumptions::Call> assumed;
  if (facts.assumption != nullptr) {
    assumed = recorder->assumptions().operator_started(function, *facts.assumption);
  }
  if (written.empty() && on_host == nullptr && assumed == nullptr) return nullptr;
  auto running = std::make_unique<RunningOperator>();
  running->written = std::move(written);
  running->start_time = gpu.clock();
  running->on_host = std::move(on_host);
  running->assumed = std::move(assumed);
  return running;
}

constexpr uint64_t kEver = UINT64_MAX;

/// A kernel may have written: what is known of it is what the host can follow.
void follow_values(const at::RecordFunction& function,
                   const at::ObserverContext& context,
                   bool computes,
                   const VirtualGpu& gpu) {
  const auto& running = static_cast<const RunningOperator&>(context);
  const uint64_t before = computes ? kEver : running.start_time;
  for (const MemoryRange& range : running.written) gpu.forget(range.address, range.bytes, before);
  if (running.on_host != nullptr) running.on_host->finish(function.outputs(), gpu);
  if (running.assumed != nullptr) {
    recorder->assume(function, *running.assumed);
  }
}

void operator_finished(const at::RecordFunction& function, at::ObserverContext* context) {
  if (recorder == nullptr) return;
  const OperatorFacts& facts = facts_of(function);
  if (!facts.is_operator) return;
  recorder->operator_finished(function);
  const VirtualGpu& gpu = recorder->gpu();
  if (!gpu) return;
  const OperatorWrites& writes = facts.writes;
  if (writes.is_closed && --closed_operators == 0) gpu.remember_here(1);
  // What a closed one wrote was not remembered, and its results are in memory that was given out
  // since, which is forgotten then.
  if (writes.computes && !writes.is_closed) {
    for_each_memory(function.outputs(), writes.results, [&](const MemoryRange& range) {
      gpu.forget(range.address, range.bytes, kEver);
    });
  }
  if (context != nullptr) follow_values(function, *context, writes.computes, gpu);
}

Context node_started(const at::RecordFunction& node) {
  if (recorder != nullptr) recorder->node_started(node);
  return nullptr;
}

void node_finished(const at::RecordFunction&, at::ObserverContext*) {
  if (recorder != nullptr) recorder->node_finished();
}

Context range_started(const at::RecordFunction& range) {
  if (recorder == nullptr || !std::string_view(range.name()).starts_with(kOptimizerStep)) {
    return nullptr;
  }
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
