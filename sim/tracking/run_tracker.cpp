#include "sim/tracking/run_tracker.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/operator_name.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "estimator/profile/host_range.h"
#include "sim/tracking/operator_key.h"
#include "sim/tracking/tensors_in.h"

namespace sim {
namespace {

using estimator::Direction;

/// Autograd gives this number to nodes that no forward operator made: accumulation of gradients.
constexpr int64_t kNoSequenceNumber = -1;

/// A scope that stands for a kernel of the plan's framework: models/shard/kernel_scope.h.
bool is_kernel_scope(const at::RecordFunction& function) {
  return function.scope() == at::RecordScope::USER_SCOPE;
}

/// Of a range that tells what the framework's host does, which is no operator.
std::optional<std::string> host_range(const at::RecordFunction& function) {
  if (!is_kernel_scope(function)) return std::nullopt;
  const std::string_view name = function.name();
  if (name.substr(0, estimator::kHostRange.size()) != estimator::kHostRange) return std::nullopt;
  return std::string(name.substr(estimator::kHostRange.size()));
}

/// What these make and still hold at their end is for backward.
bool keeps_for_backward(Direction direction) {
  return direction == Direction::kForward || direction == Direction::kRecompute;
}

}  // namespace

size_t PlacedCollectiveHash::operator()(const PlacedCollective& collective) const {
  return std::hash<std::string>()(collective.module) ^
         std::hash<int64_t>()(collective.call.bytes * 64 + collective.chunk * 16 +
                              static_cast<int64_t>(collective.call.kind));
}

RunTracker::RunTracker(const Options& options) : options_(options), memory_(options.keep_history) {
  this_thread();
}

void RunTracker::begin_phase(int32_t phase, Direction direction) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  phase_direction_ = direction;
  after_backward_.forward_begins();
  for (ThreadPlaces& thread : threads_) thread.forward_nodes.clear();  // no graph outlives a phase
  if (static_cast<size_t>(phase) < history_.phases.size()) return;     // it goes on
  history_.phases.push_back({.begin_us = now_us(), .end_us = 0});
}

void RunTracker::set_direction(Direction direction) {
  const std::lock_guard lock(mutex_);
  phase_direction_ = direction;
}

void RunTracker::backward_ran() {
  const std::lock_guard lock(mutex_);
  after_backward_.node_ran();
}

void RunTracker::end_phase() {
  const std::lock_guard lock(mutex_);
  memory_.phase_ended();
  history_.phases.back().end_us = now_us();
}

void RunTracker::end_iteration() {
  const std::lock_guard lock(mutex_);
  memory_.iteration_ended();
}

void RunTracker::set_recording(bool recording) {
  const std::lock_guard lock(mutex_);
  recording_ = recording;
}

void RunTracker::forget_operators() {
  const std::lock_guard lock(mutex_);
  operators_ = OperatorTally();
}

void RunTracker::enter_module(const std::string& name) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  Place place = place_of(thread);
  place.module = modules_.child(place.module, name);
  enter(thread, {.place = place});
}

void RunTracker::enter_path(std::string_view path) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  if (place_in_modules(thread).direction == Direction::kForward) after_backward_.forward_begins();
  Place place = place_of(thread);
  const bool computes_again =
      !options_.directions_are_announced && place.direction == Direction::kBackward;
  place.module = modules_.at(path);
  if (computes_again) place.direction = Direction::kRecompute;
  enter(thread, {.place = place, .forward_since = computes_again ? memory_.log().now() : -1});
}

void RunTracker::enter_direction(Direction direction, int64_t micro_batch, int64_t chunk) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  const Place around = place_of(thread);
  if (!estimator::is_per_micro_batch(direction)) {
    micro_batch = estimator::kNoMicroBatch;
  } else if (micro_batch == estimator::kNoMicroBatch) {
    micro_batch = around.micro_batch;
    chunk = around.chunk;
  }
  const Place place{around.module, direction, micro_batch, chunk, around.stream};
  enter(
      thread,
      {.place = place, .forward_since = keeps_for_backward(direction) ? memory_.log().now() : -1});
  if (begins_part(place)) order_now().part_began(place);
}

void RunTracker::enter_piece(Direction direction,
                             int64_t micro_batch,
                             int64_t chunk,
                             int64_t piece) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  const Place around = place_of(thread);
  const Place place{around.module, direction, micro_batch, chunk, around.stream};
  enter(thread, {.place = place});
  if (begins_part(place)) order_now().piece_began(piece, place);
}

/// The order, told what is allocated now.
OrderLog& RunTracker::order_now() {
  order_.allocated(memory_.allocated_bytes());
  return order_;
}

/// Recompute is within a backward.
bool RunTracker::begins_part(const Place& place) const {
  return recording_ && options_.keep_order &&
         (place.direction == Direction::kForward || place.direction == Direction::kBackward);
}

void RunTracker::leave_direction() {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  if (const Place place = place_of(thread); begins_part(place)) order_now().part_ended(place);
  leave(thread);
}

void RunTracker::leave() {
  const std::lock_guard lock(mutex_);
  leave(this_thread());
}

void RunTracker::operator_started(const at::RecordFunction& function) {
  const std::lock_guard lock(mutex_);
  if (!follows_operators()) return;
  ThreadPlaces& thread = this_thread();
  if (const auto range = host_range(function)) return host_range_started(*range, thread);
  if (is_main(thread)) after_backward_.operator_starts(at::sequence_number::peek());
  const OperatorTraits* const own = traits(function);
  if (own == nullptr) return;
  if (options_.attribute_memory) saw_written(function.inputs(), *own);
  const OperatorTraits* kernel = thread.operators.kernel();
  const OperatorTraits* op = kernel != nullptr ? kernel : own;
  OperatorFrame& frame = thread.operators.push();
  frame.is_part_of_kernel = kernel != nullptr;
  if (recording_ && own->takes_host && op->takes_host) {
    const bool twice = thread.dispatches_again > 0 && kernel == nullptr && own->is_kernel;
    thread.begun.operators += twice ? 2 : 1;
  }
  frame.call.op = op;
  if (!recording_ || frame.is_part_of_kernel || op->moves_no_data) return;
  const Place place = place_of(thread);
  frame.call.phase = phase_;
  frame.call.direction = place.direction;
  frame.call.module_kind = kind_of(place);
  frame.call.chunk = place.chunk;
  if (!is_kernel_scope(function)) {
    measure_inputs(function.inputs(), frame.call, options_.read_integers);
  }
}

void RunTracker::host_range_started(const std::string& name, ThreadPlaces& thread) {
  if (name == estimator::kDispatchedAgain) {
    ++thread.dispatches_again;
  } else if (recording_ && name == estimator::kDispatch) {
    ++thread.begun.operators;
  } else if (recording_) {
    thread.begun.ranges.push_back(name);
  }
}

void RunTracker::operator_finished(const at::RecordFunction& function) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  if (const auto range = host_range(function)) {
    if (range == estimator::kDispatchedAgain) --thread.dispatches_again;
    return;
  }
  if (thread.operators.empty() || traits(function) == nullptr) return;
  if (options_.attribute_memory && !is_kernel_scope(function)) saw_results(function);
  const bool is_counted = recording_ && count_if_work(thread.operators.top(), function);
  thread.operators.pop();
  if (thread.operators.empty()) {
    outermost_operator_ended(thread);
  } else if (is_counted) {
    thread.operators.top().called_a_counted = true;
  }
}

/// Counts an operator that is work of its own; whether it, or what it called, is counted.
bool RunTracker::count_if_work(OperatorFrame& frame, const at::RecordFunction& function) {
  if (frame.called_a_counted && !frame.call.op->counts_calls) return true;
  if (frame.is_part_of_kernel || frame.call.op->moves_no_data) return false;
  if (is_kernel_scope(function)) {
    const std::vector<c10::IValue>& moved = function.outputs();  // what it reads, what it writes
    if (moved.empty()) return true;
    measure_inputs(moved[0].toListRef(), frame.call);
    measure_outputs(moved[1].toListRef(), frame.call);
  } else {
    measure_outputs(function.outputs(), frame.call);
  }
  if (frame.call.bytes == 0) return false;
  const int64_t item = operators_.add(frame.call);
  if (options_.keep_order) {
    ThreadPlaces& thread = this_thread();
    order_now().operator_counted(item, place_of(thread), std::exchange(thread.begun, {}));
  }
  return true;
}

/// Of what an operator writes without returning it: views of memory that no operator made, where a
/// storage was resized.
void RunTracker::saw_written(c10::ArrayRef<c10::IValue> inputs, const OperatorTraits& op) {
  if (op.unreturned_writes == 0) return;
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 64); ++i) {
    if ((op.unreturned_writes >> i & 1) == 0) continue;
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) { memory_.saw_tensor(tensor); });
  }
}

void RunTracker::saw_results(const at::RecordFunction& function) {
  for (const c10::IValue& output : function.outputs()) {
    for_each_tensor(output, [&](const at::Tensor& tensor) { memory_.saw_tensor(tensor); });
  }
}

void RunTracker::outermost_operator_ended(ThreadPlaces& thread) {
  if (thread.made_in_operators.empty()) return;
  const ModuleId cublas = modules_.child(kRootModule, "cublas");
  for (const uint64_t address : thread.made_in_operators) memory_.operator_ended(address, cublas);
  thread.made_in_operators.clear();
}

void RunTracker::node_started(const at::RecordFunction& node) {
  const std::lock_guard lock(mutex_);
  if (!follows_operators()) return;
  if (!options_.directions_are_announced) end_forward();
  after_backward_.node_ran();
  ThreadPlaces& thread = this_thread();
  thread.ran_nodes = true;
  if (recording_) ++thread.begun.operators;
  Place place = place_of(thread);
  place.module = module_of_node(node, place);
  place.direction = Direction::kBackward;
  enter(thread, {.place = place});
}

void RunTracker::end_forward() {
  if (!forward_made_) return;
  memory_.forward_ended(forward_since_, Direction::kForward);
  forward_since_ = memory_.log().now();
  forward_made_ = false;
}

void RunTracker::node_finished() {
  const std::lock_guard lock(mutex_);
  if (follows_operators()) leave(this_thread());
}

void RunTracker::collective_called(const estimator::CollectiveCall& call) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  ThreadPlaces& thread = this_thread();
  const Place place = place_of(thread);
  const int64_t item = collectives_.add({.call = call,
                                         .phase = phase_,
                                         .direction = place.direction,
                                         .module = modules_.module(place.module).group,
                                         .chunk = place.chunk});
  if (options_.keep_order) {
    order_now().collective_counted(item, call, place, std::exchange(thread.begun, {}));
  }
}

int64_t RunTracker::end_of_last_call(estimator::GroupKind group) const {
  const std::lock_guard lock(mutex_);
  return recording_ ? order_.end_of_last_call(group) : OrderLog::kNoRecord;
}

int64_t RunTracker::new_stream() {
  const std::lock_guard lock(mutex_);
  return order_.new_stream();
}

void RunTracker::enter_stream(int64_t stream) {
  const std::lock_guard lock(mutex_);
  ThreadPlaces& thread = this_thread();
  Place place = place_of(thread);
  place.stream = stream;
  enter(thread, {.place = place});
}

int64_t RunTracker::record_point() {
  const std::lock_guard lock(mutex_);
  const Place place = place_of(this_thread());
  return recording_ ? order_.record(place.stream, place) : OrderLog::kNoRecord;
}

void RunTracker::wait_for_point(int64_t point) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || point == OrderLog::kNoRecord) return;
  const Place place = place_of(this_thread());
  order_.wait(place.stream, point, place);
}

void RunTracker::keep_error(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void RunTracker::throw_if_failed() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

std::string module_path(const RunTracker& tracker, ModuleId module) {
  return tracker.locked([&](const TrackedRun& run) { return run.modules().module(module).path; });
}

std::vector<std::string> TrackedRun::frames(int32_t stack) const {
  return stack < 0 ? std::vector<std::string>() : tracker_.frames_.names(stack);
}

Place RunTracker::place_here() {
  const std::lock_guard lock(mutex_);
  return place_of(this_thread());
}

ThreadPlaces& RunTracker::this_thread() { return thread(at::RecordFunction::currentThreadId()); }

ThreadPlaces& RunTracker::thread(uint64_t id) {
  for (ThreadPlaces& known : threads_) {
    if (known.thread_id == id) return known;
  }
  return threads_.emplace_back(id);
}

/// A backward, what follows it and an optimizer's step may run inside a module that calls them:
/// they are no part of that.
Place RunTracker::place_of(const ThreadPlaces& thread) const {
  const Place place = place_in_modules(thread);
  if (options_.directions_are_announced || place.direction != Direction::kForward) return place;
  if (phase_direction_ == Direction::kOptimizerStep) {
    return {.module = kRootModule, .direction = phase_direction_};
  }
  if (!is_after_backward(thread)) return place;
  return {.module = kRootModule, .direction = Direction::kReduceGradients};
}

bool RunTracker::is_after_backward(const ThreadPlaces& thread) const {
  return is_main(thread) ? after_backward_.is_here(at::sequence_number::peek())
                         : after_backward_.is_here();
}

Place RunTracker::place_in_modules(const ThreadPlaces& thread) const {
  if (!thread.scopes.empty()) return thread.scopes.back().place;
  const ThreadPlaces& main = threads_.front();
  Place place = {.module = kRootModule, .direction = phase_direction_};
  if (!main.scopes.empty()) place = main.scopes.back().place;
  if (thread.ran_nodes && &thread != &main) place.direction = Direction::kBackward;
  return place;
}

void RunTracker::enter(ThreadPlaces& thread, const Scope& scope) {
  thread.scopes.push_back(scope);
  memory_.place_entered(scope.place);
  note_module(thread);
}

void RunTracker::leave(ThreadPlaces& thread) {
  if (thread.scopes.empty()) throw std::logic_error("a scope was left that was not entered");
  const Scope scope = thread.scopes.back();
  thread.scopes.pop_back();
  if (scope.forward_since >= 0) {
    activation_bytes_ = memory_.forward_ended(scope.forward_since, scope.place.direction);
  }
  note_module(thread);
}

void RunTracker::note_module(ThreadPlaces& thread) {
  if (!follows_operators()) return;
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
  if (is_kernel_scope(function)) {
    const auto [known, is_new] = kernels_.try_emplace(function.name());
    if (is_new) known->second = traits_of_kernel(known->first, options_.device);
    return &known->second;
  }
  const char* key = operator_key(function);
  const auto known = traits_.find(key);
  if (known != traits_.end()) return known->second ? &*known->second : nullptr;
  const std::optional<c10::OperatorName> name = function.operator_name();
  auto& added = traits_[key];
  if (name) added = traits_of(*name, options_.device);
  return added ? &*added : nullptr;
}

}  // namespace sim
