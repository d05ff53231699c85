// The events of an iteration as they were recorded, and the trace that they make.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/profile/trace.h"
#include "sim/exec/trace/nccl_group.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// `item` is a work's number, or that of a record on the virtual GPU; `place.module` is a number of
/// the tracker's tree.
struct TracedEvent {
  estimator::TraceEventKind kind = estimator::TraceEventKind::kLaunch;
  int stream = -1;
  int64_t item = 0;
  Place place;
  estimator::HostIssue issue = estimator::HostIssue::kNothing;
  int64_t operators = 0;
};

/// Not thread-safe.
class TracedIteration {
 public:
  /// Begins at `number`, and ends; the last record that was seen before is `last_record`. Between
  /// them it may be stopped and started again.
  void start(int64_t number, int64_t last_record);
  void stop(int64_t last_record);
  /// What was recorded does not count. Called between stop() and start().
  void forget();
  /// How often forget() was called.
  int64_t forgotten() const { return forgotten_; }

  std::size_t size() const { return events_.size(); }
  TracedEvent& add(const TracedEvent& event) { return events_.emplace_back(event); }
  /// The event at `place` is one of `work`.
  void is_work(std::size_t place, const estimator::TraceWork& work);
  int64_t number_of(const estimator::TraceWork& work);
  /// A call within an NCCL group, whose work so far is `work`. Returns whether it is the first of
  /// its group, whose event is the next one that is added.
  bool add_to_group(const onerank_nccl_call& call, const estimator::TraceWork& work);

  /// The outermost module at `model` is called to train on a tensor of so many integers.
  void model_reads(uint64_t model, int64_t integers);
  void backward_is_differentiated() { differentiates_backward_ = true; }
  /// An outermost module that is trained is called without gradients; the call ends.
  void evaluation_started();
  void evaluation_finished();
  /// `name` begins before the next event.
  void range_started(std::string_view name);

  /// Empty unless a whole iteration was recorded. `tracker` knows the names of modules.
  std::optional<estimator::Trace> trace(const RunTracker& tracker) const;

 private:
  struct Group {
    std::size_t event = 0;
    NcclGroup calls;
  };
  void number_last_works();
  std::map<int64_t, int64_t> places_of_records() const;
  estimator::Trace whole_trace(const RunTracker& tracker) const;
  /// Of `ranges_` and `evaluations_`.
  void place_calls(const std::vector<int64_t>& places, estimator::Trace& trace) const;

  bool is_recording_ = false;
  bool is_complete_ = false;
  int64_t number_ = 0;
  int64_t forgotten_ = 0;
  int64_t first_record_ = 0;  // from the first start to the last stop
  int64_t end_record_ = 0;
  bool differentiates_backward_ = false;
  std::vector<TracedEvent> events_;
  std::vector<estimator::TraceRange> ranges_;      // by places in `events_`
  std::vector<estimator::TraceCall> evaluations_;  // by places in `events_`
  bool is_evaluating_ = false;
  std::vector<estimator::TraceWork> works_;
  std::map<std::string, int64_t> numbers_;  // of works, by their text
  std::map<NcclGroup::Key, Group> groups_;
  std::map<uint64_t, int64_t> models_;                     // numbers, by address
  std::map<std::pair<int64_t, int64_t>, int64_t> inputs_;  // calls, by model and integers
};

}  // namespace sim
