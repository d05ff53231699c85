#include "sim/tracking/run_tracker.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/operator_name.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

namespace sim {
namespace {

using estimator::Direction;

/// Autograd gives this number to nodes that no forward operator made: accumulation of gradients.
constexpr int64_t kNoSequenceNumber = -1;

}  // namespace

size_t PlacedCollectiveHash::operator()(const PlacedCollective& collective) const {
  return std::hash<std::string>()(collective.module) ^
         std::hash<int64_t>()(collective.call.bytes * 64 +
                              static_cast<int64_t>(collective.call.kind));
}

RunTracker::RunTracker(const Options& options) : options_(options) { this_thread(); }

void RunTracker::begin_phase(int32_t phase, int64_t allocated_bytes, Direction direction) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  phase_direction_ = direction;
  phase_peak_ = {.allocated_bytes = allocated_bytes};
}

PeakPlace RunTracker::phase_peak() const {
  const std::lock_guard lock(mutex_);
  return phase_peak_;
}

void RunTracker::set_recording(bool recording) {
  const std::lock_guard lock(mutex_);
  recording_ = recording;
  for (ThreadPlaces& thread : threads_) thread.forward_nodes.clear();
}

void RunTracker::enter_module(const std::string& name) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  const Place around = place_of(thread);
  enter(thread, {modules_.child(around.module, name), around.direction});
}

void RunTracker::enter_direction(Direction direction) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  enter(thread, {place_of(thread).module, direction});
}

void RunTracker::leave() {
  const std::lock_guard lock(mutex_);
  leave(this_thread());
}

void RunTracker::operator_started(const at::RecordFunction& function) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  ThreadPlaces& thread = this_thread();
  const OperatorTraits* kernel = thread.operators.kernel();
  const OperatorTraits* op = kernel != nullptr ? kernel : traits(function);
  OperatorFrame& frame = thread.operators.push();
  frame.is_part_of_kernel = kernel != nullptr;
  frame.call.op = op;
  if (frame.is_part_of_kernel || op->moves_no_data) return;
  const Place place = place_of(thread);
  frame.call.phase = phase_;
  frame.call.direction = place.direction;
  frame.call.module_kind = kind_of(place);
  measure_inputs(function.inputs(), frame.call);
}

void RunTracker::operator_finished(const at::RecordFunction& function) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  if (thread.operators.empty()) return;
  OperatorFrame& frame = thread.operators.top();
  bool is_counted = frame.called_a_counted;
  if (!frame.is_part_of_kernel && !frame.call.op->moves_no_data && !is_counted) {
    measure_outputs(function.outputs(), frame.call);
    is_counted = frame.call.bytes > 0;
    if (is_counted) operators_.add(frame.call);
  }
  thread.operators.pop();
  if (is_counted && !thread.operators.empty()) thread.operators.top().called_a_counted = true;
}

void RunTracker::node_started(const at::RecordFunction& node) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  ThreadPlaces& thread = this_thread();
  enter(thread, {module_of_node(node, place_of(thread)), Direction::kBackward});
}

void RunTracker::node_finished() {
  const std::lock_guard lock(mutex_);
  if (recording_) leave(this_thread());
}

void RunTracker::collective_called(const estimator::CollectiveCall& call) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  const Place place = place_of(this_thread());
  collectives_.add({.call = call,
                    .phase = phase_,
                    .direction = place.direction,
                    .module = modules_.module(place.module).group});
}

void RunTracker::keep_error(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void RunTracker::throw_if_failed() const {
  if (error_) std::rethrow_exception(error_);
}

void RunTracker::reportMemoryUsage(void* /*block*/,
                                   int64_t change_bytes,
                                   size_t allocated_bytes,
                                   size_t /*reserved_bytes*/,
                                   c10::Device device) {
  if (change_bytes <= 0 || device.type() != options_.device) return;
  const auto allocated = static_cast<int64_t>(allocated_bytes);
  const std::lock_guard lock(mutex_);
  if (allocated <= phase_peak_.allocated_bytes) return;
  const ThreadPlaces& thread = this_thread();
  phase_peak_ = {.allocated_bytes = allocated,
                 .module = place_of(thread).module,
                 .op = thread.operators.at_work()};
}

ThreadPlaces& RunTracker::this_thread() { return thread(at::RecordFunction::currentThreadId()); }

ThreadPlaces& RunTracker::thread(uint64_t id) {
  for (ThreadPlaces& known : threads_) {
    if (known.thread_id == id) return known;
  }
  return threads_.emplace_back(id);
}

Place RunTracker::place_of(const ThreadPlaces& thread) const {
  if (!thread.scopes.empty()) return thread.scopes.back();
  const ThreadPlaces& main = threads_.front();
  if (!main.scopes.empty()) return main.scopes.back();
  return {.module = kRootModule, .direction = phase_direction_};
}

void RunTracker::enter(ThreadPlaces& thread, Place place) {
  thread.scopes.push_back(place);
  note_module(thread);
}

void RunTracker::leave(ThreadPlaces& thread) {
  if (thread.scopes.empty()) throw std::logic_error("a scope was left that was not entered");
  thread.scopes.pop_back();
  note_module(thread);
}

void RunTracker::note_module(ThreadPlaces& thread) {
  if (!recording_) return;
  thread.forward_nodes.module_changed(at::sequence_number::peek(), place_of(thread).module);
}

ModuleId RunTracker::module_of_node(const at::RecordFunction& node, const Place& around) {
  if (node.seqNr() == kNoSequenceNumber) return modules_.child(around.module, "gradients");
  const ThreadPlaces& forward = thread(node.forwardThreadId());
  return forward.forward_nodes.module_of(node.seqNr()).value_or(around.module);
}

/// What is done once for an iteration is of its own kind, whichever module it is done for.
ModuleKind RunTracker::kind_of(const Place& place) const {
  if (place.direction == Direction::kOptimizerStep) return ModuleKind::kOptimizer;
  if (place.direction == Direction::kReduceGradients) return ModuleKind::kGradients;
  return modules_.module(place.module).kind;
}

const OperatorTraits* RunTracker::traits(const at::RecordFunction& function) {
  // An operator's overload name lies in its schema, so the address tells operators apart.
  const char* key = function.overload_name();
  const auto known = traits_.find(key);
  if (known != traits_.end()) return &known->second;
  const std::optional<c10::OperatorName> name = function.operator_name();
  // A range that a program named for profilers is no operator: what runs in it is.
  OperatorTraits traits = name ? traits_of(*name, options_.device)
                               : OperatorTraits{.name = function.name(), .moves_no_data = true};
  return &traits_.emplace(key, std::move(traits)).first->second;
}

}  // namespace sim
