// Writes down in which order a run did what its tallies count: see estimator/profile/step_order.h.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "estimator/profile/collective_call.h"
#include "estimator/profile/step_order.h"
#include "sim/tracking/thread_places.h"

namespace sim {

/// A stream has the number that new_stream() gave it. Not thread-safe.
class OrderLog {
 public:
  int64_t new_stream() { return ++streams_; }

  /// What is allocated on the device from now on.
  void allocated(int64_t bytes) { allocated_bytes_ = bytes; }
  /// The forward or backward of a micro-batch begins, or ends, with what is allocated now.
  void part_began(const Place& place) { memory_[part_of(place)].begin_bytes = allocated_bytes_; }
  void part_ended(const Place& place) { memory_[part_of(place)].end_bytes = allocated_bytes_; }

  void piece_began(int64_t piece, const Place& place);

  void operator_counted(int64_t item, const Place& place, BegunWork begun);
  void collective_counted(int64_t item,
                          const estimator::CollectiveCall& call,
                          const Place& place,
                          BegunWork begun);

  /// Records a point in the work of `stream`, and has `stream` wait for one. `place` is where the
  /// host is.
  int64_t record(int64_t stream, const Place& place);
  void wait(int64_t stream, int64_t record, const Place& place);

  /// The record at the end of the group's last asynchronous call, or kNoRecord.
  int64_t end_of_last_call(estimator::GroupKind group) const;

  /// `modules`: those of the places.
  estimator::StepOrder order(const ModuleTree& modules) const;

  static constexpr int64_t kNoRecord = -1;

 private:
  struct Event {
    estimator::OrderKind kind;
    int64_t stream = 0;
    int64_t item = 0;
    int64_t allocated_bytes = 0;
    BegunWork begun;
    Place place;
  };
  /// A part of the iteration that each micro-batch has.
  using Part = std::pair<bool, int64_t>;  // backward, chunk
  /// Tells a record among those of its part of the iteration.
  struct Record {
    Part part;
    int64_t micro_batch = estimator::kNoMicroBatch;
    int64_t number = 0;  // in its part
  };

  static Part part_of(const Place& place);
  void add(estimator::OrderKind kind,
           int64_t stream,
           int64_t item,
           const Place& place,
           BegunWork begun = {});
  int64_t stream_of(const estimator::CollectiveCall& call);
  std::map<Part, int64_t> last_micro_batches() const;
  std::vector<Event> kept_events(const std::map<Part, int64_t>& last) const;

  int64_t allocated_bytes_ = 0;
  std::map<Part, estimator::PartMemory> memory_;  // of the last micro-batch
  int64_t streams_ = estimator::kMainStream;
  std::map<std::pair<estimator::GroupKind, estimator::CollectiveKind>, int64_t> group_streams_;
  std::map<estimator::GroupKind, int64_t> last_calls_;  // records at their ends
  std::vector<Event> events_;
  std::vector<Record> records_;
  std::map<std::pair<Part, int64_t>, int64_t> counts_;  // of records by part and micro-batch
};

}  // namespace sim
