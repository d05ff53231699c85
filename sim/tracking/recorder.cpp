#include "sim/tracking/recorder.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace sim {
namespace {

using estimator::Direction;
using estimator::MicroBatchRecord;

constexpr std::string_view kOptimizerStep = "optimizer_step";

void require(bool holds, std::string_view broken_promise) {
  if (!holds) throw std::logic_error(std::string(broken_promise));
}

/// Times in one iteration as planned, rounded to the nearest.
int64_t planned_count(int64_t executed_count,
                      Direction direction,
                      const MicroBatchRecord& micro_batches) {
  if (!estimator::is_per_micro_batch(direction)) return executed_count;
  return (executed_count * micro_batches.total + micro_batches.executed / 2) /
         micro_batches.executed;
}

}  // namespace

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)),
      tracker_(std::make_shared<RunTracker>(RunTracker::Options{
          .device = options_.memory.device_type(), .locate_peak = options_.locate_peak})),
      carried_by_threads_(c10::DebugInfoKind::PROFILER_STATE, tracker_) {}

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
      running_.before.allocated_bytes,
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
  phase_peaks_.push_back(tracker_->phase_peak());
}

void Recorder::stop_clock() {
  options_.memory.finish_work();
  stopped_ = Clock::now();
}

void Recorder::continue_clock() {
  options_.memory.finish_work();
  started_ += Clock::now() - stopped_;
}

void Recorder::start_recording() {
  require(!callbacks_, "recording is on already");
  tracker_->set_recording(true);
  callbacks_.emplace();
}

void Recorder::stop_recording() {
  require(callbacks_.has_value(), "recording is not on");
  callbacks_.reset();
  tracker_->set_recording(false);
}

void Recorder::on_collective(const estimator::CollectiveCall& call) {
  tracker_->collective_called(call);
}

void Recorder::enter_module(const std::string& name) { tracker_->enter_module(name); }

void Recorder::leave_module() { tracker_->leave(); }

void Recorder::enter_direction(Direction direction) {
  if (direction == Direction::kForward) {
    forward_start_bytes_ = options_.memory.current().allocated_bytes;
  }
  tracker_->enter_direction(direction);
}

void Recorder::leave_direction() { tracker_->leave(); }

void Recorder::forward_finished(int64_t micro_batch) {
  // The last forward of the run stays: by then workspaces and other first-time memory are there.
  activation_bytes_ = options_.memory.current().allocated_bytes - forward_start_bytes_;
  require(in_flight_.insert(micro_batch).second, "a micro-batch's forward finished twice");
  most_in_flight_ = std::max(most_in_flight_, static_cast<int64_t>(in_flight_.size()));
}

void Recorder::backward_finished(int64_t micro_batch) {
  require(in_flight_.erase(micro_batch) == 1, "a backward finished whose forward did not");
}

void Recorder::finish(estimator::RankProfile& profile) const {
  require(running_.name.empty() && !callbacks_, "the run is not finished");
  require(profile.micro_batches.executed > 0, "no micro-batches were executed");
  tracker_->throw_if_failed();
  profile.phases = phases_;
  profile.peak = peak_record();
  profile.micro_batches.most_in_flight = most_in_flight_;
  profile.micro_batches.activation_bytes = activation_bytes_;
  profile.collectives.clear();
  for (const auto& entry : tracker_->collectives().entries()) {
    profile.collectives.push_back(record_of(entry, profile.micro_batches));
  }
  profile.operators.clear();
  for (const auto& entry : tracker_->operators().entries()) {
    profile.operators.push_back(record_of(entry, profile.micro_batches));
  }
}

/// Of equal peaks the last: its operator is known if it is in the recorded iteration.
estimator::PeakRecord Recorder::peak_record() const {
  estimator::PeakRecord record;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const estimator::MemoryReading& peak = phases_[i].peak;
    record.reserved_bytes = std::max(record.reserved_bytes, peak.reserved_bytes);
    if (peak.allocated_bytes < record.allocated_bytes) continue;
    const PeakPlace& place = phase_peaks_[i];
    record.allocated_bytes = peak.allocated_bytes;
    record.phase = phases_[i].name;
    record.module = tracker_->modules().module(place.module).path;
    record.operator_name = place.op == nullptr ? "" : place.op->name;
  }
  return record;
}

estimator::CollectiveRecord Recorder::record_of(const RunTracker::CollectiveTally::Entry& entry,
                                                const MicroBatchRecord& micro_batches) const {
  const PlacedCollective& placed = *entry.item;
  return {
      .call = placed.call,
      .phase = iteration_phase(placed.phase),
      .direction = placed.direction,
      .module = placed.module,
      .overlappable = options_.overlappable && options_.overlappable(placed.call, placed.direction),
      .count = planned_count(entry.count, placed.direction, micro_batches),
      .executed_count = entry.count};
}

estimator::OperatorRecord Recorder::record_of(const RunTracker::OperatorTally::Entry& entry,
                                              const MicroBatchRecord& micro_batches) const {
  const OperatorCall& call = *entry.item;
  return {.name = call.op->name,
          .shapes = shapes_of(call),
          .dtype = c10::toString(call.dtype),
          .flops = call.flops,
          .bytes = static_cast<double>(call.bytes),
          .phase = iteration_phase(call.phase),
          .direction = call.direction,
          .module_kind = estimator::to_string(call.module_kind),
          .count = planned_count(entry.count, call.direction, micro_batches),
          .executed_count = entry.count};
}

/// "iteration_1.forward_backward" -> "forward_backward"
std::string Recorder::iteration_phase(int32_t phase) const {
  const std::string& name = phases_.at(phase).name;
  return name.substr(name.find('.') + 1);
}

}  // namespace sim
