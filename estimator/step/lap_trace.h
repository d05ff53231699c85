// Laps of a model chunk: micro-batches one after the other, and what comes after the last, as the
// trace of a rank that does nothing else.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "estimator/replay/trace_replay.h"
#include "estimator/step/chunk_replay.h"

namespace estimator {

using LapEvents = std::vector<std::size_t>;  ///< places in the order, ascending

/// When the works of a lap have ended.
struct PlayedLap {
  double end = 0;                     ///< of the micro-batch, on all streams
  double main_end = 0;                ///< on the streams on which the rank computes
  double forward_end = 0;             ///< the same, of its forward
  double once_end = 0;                ///< of what happens once
  double call_seconds = 0;            ///< of the collectives that happen once
  double multiprocessor_seconds = 0;  ///< the same times the share of the GPU's that they take
};

struct PlayedLaps {
  std::vector<PlayedLap> laps;
  std::vector<PlayedWork> works;
};

class LapTrace {
 public:
  /// `order` must outlive it, `records` only what is added. All but their WorkPrice is taken from
  /// these records.
  LapTrace(const StepOrder& order, const PricedRecords& records, const HostWaits& waits);

  void add_micro_batch(const LapEvents& forward, const LapEvents& backward);
  /// A forward and a backward that run together, with their events in the order of the host.
  void add_combined(const LapEvents& events);
  /// What comes after the micro-batch of `lap`, perhaps with others between.
  void add_end_of(std::size_t lap, const LapEvents& events);

  /// Nobody asks for more than the laps until now: with these the replay ends.
  void end_here();

  /// What the host needs for the first lap.
  double host_seconds() const;

  /// Of the works, in their order.
  std::vector<WorkPrice> prices(const PricedRecords& records) const;
  /// The host begins `host_lead_seconds` before the GPU.
  PlayedLaps play(const std::vector<WorkPrice>& prices, double host_lead_seconds) const;

  struct OfWork {
    std::size_t place = 0;  ///< in the order
    std::size_t lap = 0;
    Direction direction = Direction::kForward;
    std::optional<GroupKind> axis_group = {};  ///< of a collective
  };
  OfWork of(const PlayedWork& work) const;

 private:
  /// Stands for all calls of its record, in graphs or not.
  struct Work {
    OrderKind kind = OrderKind::kOperator;
    std::size_t item = 0;  ///< of the records
    bool is_in_graph = false;
    std::optional<GroupKind> axis_group = {};
  };
  struct OfEvent {
    std::size_t place = 0;  ///< in the order
    std::size_t lap = 0;
  };

  const Work& work_of(const PlayedWork& played) const;
  void begin_lap();
  void add_part(const LapEvents& events);
  void add(std::size_t event);
  void add_event(std::size_t event, TraceEventKind kind, int64_t item, double issue_seconds = 0);
  void add_work(std::size_t event, OrderKind kind);
  void wait_after(const LapEvents& events);
  int64_t work_number(Work work, const RecordPrice& record);
  double issue_seconds(std::size_t event, const RecordPrice& record, int64_t graph);
  double dispatch_seconds(std::size_t event) const;
  void price_ranges();

  const StepOrder& order_;
  const PricedRecords& records_;
  const HostWaits waits_;
  RankProfile profile_;
  std::set<int64_t> computing_streams_ = {kMainStream};  ///< also those on which pieces run
  std::size_t laps_ = 0;
  std::size_t wanted_laps_ = std::numeric_limits<std::size_t>::max();
  std::optional<int64_t> last_event_;  ///< of these
  int64_t first_record_ = 0;           // of the lap
  std::vector<bool> recorded_;
  /// Among the works, of each record outside of graphs and in them; -1: none.
  std::vector<int64_t> number_of_operator_, number_of_collective_;
  std::map<std::size_t, double> range_seconds_;  ///< by places in the order
  int64_t last_graph_ = GraphLaunches::kNone;
  std::vector<Work> works_;
  std::vector<double> issue_seconds_;
  std::vector<OfEvent> of_event_;
};

/// Laps that are played with the prices of one plan after the other, and what came of each list of
/// prices so far.
template <class Result>
class LapSeries {
 public:
  using OfPlayed = Result (*)(const PlayedLaps&, const LapTrace&);

  LapSeries(LapTrace trace, double host_lead_seconds, OfPlayed of_played)
      : trace_(std::move(trace)), host_lead_seconds_(host_lead_seconds), of_played_(of_played) {}

  const Result& with(const PricedRecords& records) {
    std::vector<WorkPrice> prices = trace_.prices(records);
    const auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& one) {
      // What differs between plans comes last.
      return std::equal(prices.rbegin(), prices.rend(), one.prices.rbegin());
    });
    if (known != known_.end()) return known->result;
    Result result = of_played_(trace_.play(prices, host_lead_seconds_), trace_);
    return known_.emplace_back(Known{std::move(prices), std::move(result)}).result;
  }

  const LapTrace& trace() const { return trace_; }

 private:
  struct Known {
    std::vector<WorkPrice> prices;
    Result result;
  };

  LapTrace trace_;
  double host_lead_seconds_;
  OfPlayed of_played_;
  std::deque<Known> known_;
};

}  // namespace estimator
