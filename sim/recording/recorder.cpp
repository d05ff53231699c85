#include "sim/recording/recorder.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sim/tracking/allocator_trace.h"
#include "sim/tracking/attribution.h"
#include "sim/tracking/memory_files.h"
#include "sim/tracking/operator_call.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::MicroBatchRecord;

constexpr std::string_view kOptimizerStep = "optimizer_step";

/// Peaks of a phase into those of the run; counts are of the run already.
void keep_largest(const estimator::AllocatorRecord& phase, estimator::AllocatorRecord& run) {
  const auto keep = [](int64_t value, int64_t& largest) { largest = std::max(value, largest); };
  keep(phase.requested_peak_bytes, run.requested_peak_bytes);
  keep(phase.active_peak_bytes, run.active_peak_bytes);
  keep(phase.inactive_split_peak_bytes, run.inactive_split_peak_bytes);
  keep(phase.segments_peak, run.segments_peak);
  run.device_allocations = phase.device_allocations;
  run.retries = phase.retries;
}

void require(bool holds, std::string_view broken_promise) {
  if (!holds) throw std::logic_error(std::string(broken_promise));
}

}  // namespace

Recorder::Recorder(RecorderOptions options)
    : options_(options),
      tracker_(std::make_shared<RunTracker>(
          RunTracker::Options{.device = options_.memory.device_type(),
                              .attribute_memory = options_.attribute_memory,
                              .keep_history = options_.keep_history,
                              .take_stacks = options_.take_stacks,
                              .keep_order = true})),
      carried_by_threads_(c10::DebugInfoKind::PROFILER_STATE, tracker_) {
  if (!options_.attribute_memory) return;
  callbacks_.emplace();
  if (options_.memory.device_type() == c10::DeviceType::CUDA) {
    // The allocator keeps the sink for ever.
    trace_allocator([tracker = std::weak_ptr(tracker_)](const AllocatorEvent& event) {
      if (const auto alive = tracker.lock()) alive->allocator_event(event);
    });
  }
}

Recorder::~Recorder() = default;

void Recorder::begin_phase(const std::string& name) {
  require(running_.name.empty(), "a phase begins inside another");
  options_.memory.finish_work();
  options_.memory.reset_peak();
  running_.name = name;
  running_.before = options_.memory.current();
  const bool is_optimizer_step = name.ends_with(kOptimizerStep);
  tracker_->begin_phase(
      static_cast<int32_t>(phases_.size()),
      is_optimizer_step ? Direction::kOptimizerStep : Direction::kReduceGradients);
  started_ = Clock::now();
}

void Recorder::end_phase() {
  require(!running_.name.empty(), "a phase ends that has not begun");
  options_.memory.finish_work();
  running_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  running_.after = options_.memory.current();
  running_.peak = options_.memory.peak();
  phases_.push_back(std::exchange(running_, {}));
  keep_largest(options_.memory.allocator(), allocator_);
  tracker_->end_phase();
}

void Recorder::stop_clock() {
  options_.memory.finish_work();
  stopped_ = Clock::now();
}

void Recorder::continue_clock() {
  options_.memory.finish_work();
  started_ += Clock::now() - stopped_;
}

estimator::OutOfMemoryRecord Recorder::out_of_memory(int64_t device_bytes,
                                                     std::string message) const {
  estimator::OutOfMemoryRecord record{.phase = running_.name, .message = std::move(message)};
  if (const auto place = tracker_->out_of_memory()) {
    record.module = tracker_->ended().modules().module(place->module).path;
    record.operator_name = place->op == nullptr ? "" : place->op->name;
    record.requested_bytes = place->requested_bytes;
    record.free_bytes = std::max<int64_t>(device_bytes - place->reserved_bytes, 0);
  }
  return record;
}

void Recorder::start_recording() {
  require(!recording_, "recording is on already");
  recording_ = true;
  tracker_->set_recording(true);
  if (!callbacks_) callbacks_.emplace();
}

void Recorder::stop_recording() {
  require(recording_, "recording is not on");
  recording_ = false;
  if (!options_.attribute_memory) callbacks_.reset();
  tracker_->set_recording(false);
}

void Recorder::on_collective(const estimator::CollectiveCall& call) {
  tracker_->collective_called(call);
}

void Recorder::on_communicated(const at::Tensor& tensor) {
  if (options_.attribute_memory) tracker_->tensor_communicated(tensor);
}

void Recorder::enter_module(const std::string& name) { tracker_->enter_module(name); }

void Recorder::leave_module() { tracker_->leave(); }

void Recorder::enter_direction(Direction direction, int64_t micro_batch, int64_t chunk) {
  tracker_->enter_direction(direction, micro_batch, chunk);
}

void Recorder::leave_direction() { tracker_->leave_direction(); }

void Recorder::enter_piece(Direction direction, int64_t micro_batch, int64_t chunk, int64_t piece) {
  tracker_->enter_piece(direction, micro_batch, chunk, piece);
}

void Recorder::leave_piece() { tracker_->leave(); }

int64_t Recorder::new_stream() { return tracker_->new_stream(); }

void Recorder::enter_stream(int64_t stream) { tracker_->enter_stream(stream); }

void Recorder::leave_stream() { tracker_->leave(); }

int64_t Recorder::record_point() { return tracker_->record_point(); }

void Recorder::wait_for_point(int64_t point) { tracker_->wait_for_point(point); }

int64_t Recorder::end_of_last_call(estimator::GroupKind group) const {
  return tracker_->end_of_last_call(group);
}

void Recorder::forward_finished(int64_t micro_batch) {
  // The last forward of the run stays: by then workspaces and other first-time memory are there.
  if (options_.attribute_memory) activation_bytes_ = tracker_->activation_bytes();
  require(in_flight_.insert(micro_batch).second, "a micro-batch's forward finished twice");
  most_in_flight_ = std::max(most_in_flight_, static_cast<int64_t>(in_flight_.size()));
}

void Recorder::backward_finished(int64_t micro_batch) {
  require(in_flight_.erase(micro_batch) == 1, "a backward finished whose forward did not");
}

void Recorder::memory_lasts(const at::Tensor& tensor, const estimator::LastingMemory& memory) {
  if (options_.attribute_memory) tracker_->memory_lasts(tensor, memory);
}

void Recorder::finish(estimator::RankProfile& profile) const {
  require(running_.name.empty() && !recording_, "the run is not finished");
  require(profile.micro_batches.executed > 0, "no micro-batches were executed");
  tracker_->throw_if_failed();
  profile.phases = phases_;
  profile.peak = peak_record();
  profile.allocator = allocator_;
  if (options_.attribute_memory)
    profile.modules = module_records(tracker_->ended(), profile.parameters);
  profile.micro_batches.most_in_flight = most_in_flight_;
  profile.micro_batches.activation_bytes = activation_bytes_;
  profile.collectives.clear();
  for (const auto& entry : tracker_->ended().collectives().entries()) {
    profile.collectives.push_back(record_of(entry, profile.micro_batches));
  }
  profile.operators.clear();
  for (const auto& entry : tracker_->ended().operators().entries()) {
    profile.operators.push_back(record_of(entry, profile.micro_batches));
  }
  profile.order = tracker_->ended().order().order(tracker_->ended().modules());
}

estimator::PeakRecord Recorder::peak_record() const {
  estimator::PeakRecord record = largest_peak(phases_);
  describe_peak(peak_allocations(), record);
  return record;
}

std::vector<std::string> Recorder::phase_names() const {
  std::vector<std::string> names;
  for (const estimator::PhaseRecord& phase : phases_) names.push_back(phase.name);
  return names;
}

std::vector<estimator::PeakAllocation> Recorder::peak_allocations() const {
  return sim::peak_allocations(tracker_->ended(), phase_names());
}

std::string Recorder::memory_history(const estimator::Json& about) const {
  return memory_history_pickle(tracker_->ended(), phase_names(), about);
}

std::string Recorder::timeline() const { return timeline_csv(tracker_->ended(), phase_names()); }

estimator::CollectiveRecord Recorder::record_of(const RunTracker::CollectiveTally::Entry& entry,
                                                const MicroBatchRecord& micro_batches) const {
  const PlacedCollective& placed = *entry.item;
  return {.call = placed.call,
          .phase = iteration_phase(placed.phase),
          .direction = placed.direction,
          .module = placed.module,
          .chunk = placed.chunk,
          .count = estimator::planned_count(entry.count, placed.direction, micro_batches),
          .executed_count = entry.count};
}

estimator::OperatorRecord Recorder::record_of(const RunTracker::OperatorTally::Entry& entry,
                                              const MicroBatchRecord& micro_batches) const {
  const OperatorCall& call = *entry.item;
  estimator::OperatorRecord record =
      operator_record(call, iteration_phase(call.phase), entry.count);
  record.count = estimator::planned_count(entry.count, call.direction, micro_batches);
  return record;
}

/// "iteration_1.forward_backward" -> "forward_backward"
std::string Recorder::iteration_phase(int32_t phase) const {
  const std::string& name = phases_.at(phase).name;
  return name.substr(name.find('.') + 1);
}

}  // namespace sim
