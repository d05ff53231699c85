#include "sim/tracking/operator_callbacks.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <exception>
#include <memory>
#include <typeinfo>

#include "sim/tracking/run_tracker.h"

namespace sim {
namespace {

/// Null where the thread carries no tracker, or another profiler's state.
RunTracker* tracker_of_this_thread() {
  c10::DebugInfoBase* info = c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE);
  if (info == nullptr || typeid(*info) != typeid(RunTracker)) return nullptr;
  return static_cast<RunTracker*>(info);
}

template <class Notify>
void notify(const Notify& notify_tracker) noexcept {
  RunTracker* tracker = tracker_of_this_thread();
  if (tracker == nullptr) return;
  try {
    notify_tracker(*tracker);
  } catch (...) {
    tracker->keep_error(std::current_exception());
  }
}

using Context = std::unique_ptr<at::ObserverContext>;

Context operator_started(const at::RecordFunction& function) {
  notify([&](RunTracker& tracker) { tracker.operator_started(function); });
  return nullptr;
}

void operator_finished(const at::RecordFunction& function, at::ObserverContext*) {
  notify([&](RunTracker& tracker) { tracker.operator_finished(function); });
}

Context node_started(const at::RecordFunction& node) {
  notify([&](RunTracker& tracker) { tracker.node_started(node); });
  return nullptr;
}

void node_finished(const at::RecordFunction&, at::ObserverContext*) {
  notify([](RunTracker& tracker) { tracker.node_finished(); });
}

}  // namespace

OperatorCallbacks::OperatorCallbacks()
    : operators_(at::addGlobalCallback(
          at::RecordFunctionCallback(operator_started, operator_finished)
              .needsInputs(true)
              .needsOutputs(true)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}))),
      nodes_(at::addGlobalCallback(at::RecordFunctionCallback(node_started, node_finished)
                                       .scopes({at::RecordScope::BACKWARD_FUNCTION}))) {}

OperatorCallbacks::~OperatorCallbacks() {
  at::removeCallback(operators_);
  at::removeCallback(nodes_);
}

}  // namespace sim
