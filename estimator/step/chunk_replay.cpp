#include "estimator/step/chunk_replay.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "estimator/step/combined_events.h"
#include "estimator/step/lap_trace.h"

namespace estimator {
/// What of the order belongs to a chunk.
struct ChunkOrder {
  /// Of a micro-batch:
  LapEvents forward;
  LapEvents backward;  ///< with recompute
  /// Once in a step:
  LapEvents gathers;  ///< of updated parameters, before the end of the first forward
  LapEvents beside;   ///< reductions before the end of the stage's last backward
  LapEvents at_end;   ///< reductions after it

  ChunkOrder(const OrderEvents& events, int64_t chunk) {
    std::size_t end_of_backwards = 0;
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      const auto direction = static_cast<Direction>(events.direction[i]);
      if (!is_per_micro_batch(direction)) continue;
      const bool is_forward = direction == Direction::kForward;
      if (!is_forward) end_of_backwards = i;
      if (std::max<int64_t>(0, events.chunk[i]) != chunk) continue;
      (is_forward ? forward : backward).push_back(i);
    }
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      if (events.chunk[i] != chunk) continue;
      const auto direction = static_cast<Direction>(events.direction[i]);
      const bool is_before_end = !forward.empty() && i < forward.back();
      if (direction == Direction::kOptimizerStep && is_before_end) gathers.push_back(i);
      if (direction != Direction::kReduceGradients) continue;
      (i < end_of_backwards ? beside : at_end).push_back(i);
    }
  }
};

/// A usual micro-batch.
struct UsualLap {
  PartTime forward, backward;
  double period = 0;            ///< from one to the next
  std::vector<PlayedLap> laps;  ///< from the first one on
};

namespace {

LapEvents merged(const LapEvents& a, const LapEvents& b) {
  LapEvents all;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

struct Interval {
  double begin = 0, end = 0;
};

struct Call : Interval {
  GroupKind group = GroupKind::kWorld;
};

/// What the GPU does in a window of time.
class Window {
 public:
  Window(std::vector<Interval> kernels, std::vector<Call> calls)
      : kernels_(std::move(kernels)), calls_(std::move(calls)) {
    const auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
    std::sort(kernels_.begin(), kernels_.end(), earlier);
    std::sort(calls_.begin(), calls_.end(), earlier);
  }

  /// Where no kernel runs, the first of the calls that run counts.
  PartTime between(double begin, double end) const {
    PartTime part;
    double busy = begin;  // until then kernels run
    for (const Interval& kernel : kernels_) {
      if (kernel.end <= busy) continue;
      if (kernel.begin >= end) break;
      if (kernel.begin > busy) wait({busy, std::min(kernel.begin, end)}, part);
      busy = std::min(end, kernel.end);
    }
    if (busy < end) wait({busy, end}, part);
    // Never below 0 but for rounding: calls lie in the window and count once.
    part.compute_seconds = std::max(0.0, end - begin - sum_of(part.communication_seconds));
    return part;
  }

 private:
  void wait(const Interval& gap, PartTime& part) const {
    double waited = gap.begin;
    for (const Call& call : calls_) {
      if (call.begin >= gap.end) break;
      const double end = std::min(call.end, gap.end);
      const double begin = std::max(call.begin, waited);
      if (end <= begin) continue;
      seconds_of_axis(part.communication_seconds, call.group) += end - begin;
      waited = end;
    }
  }

  std::vector<Interval> kernels_;
  std::vector<Call> calls_;
};

}  // namespace

double PartTime::total_seconds() const { return compute_seconds + sum_of(communication_seconds); }

void add(PartTime& sum, const PartTime& part, double times) {
  sum.compute_seconds += times * part.compute_seconds;
  add(sum.communication_seconds, part.communication_seconds, times);
}

namespace {

/// `laps` are those of ChunkPlayer::Laps::reducing_laps(), of which the one that reduces is number
/// `reducing`.
ReductionTime reduction_time(const std::vector<PlayedLap>& laps,
                             std::size_t reducing,
                             const UsualLap& usual) {
  const PlayedLap &reduces = laps[reducing], &next = laps[reducing + 1];
  const bool others_follow = laps.size() > reducing + 2;
  const double stage_end =
      std::max(others_follow ? next.main_end : reduces.main_end, reduces.once_end);
  const double call_seconds = reduces.call_seconds + laps.back().call_seconds;
  // Never below 0 but for rounding.
  const auto positive = [](double seconds) { return std::max(0.0, seconds); };
  return {
      .beside_seconds = reduces.call_seconds,
      .backward_added_seconds = positive(reduces.main_end - usual.laps[reducing].main_end),
      .left_seconds = positive(reduces.once_end - reduces.main_end),
      .next_added_seconds =
          others_follow ? positive(next.main_end - reduces.main_end - usual.period) : 0,
      .end_seconds = positive(laps.back().once_end - stage_end),
      .multiprocessors =
          call_seconds > 0
              ? (reduces.multiprocessor_seconds + laps.back().multiprocessor_seconds) / call_seconds
              : 0,
      .communicates = call_seconds > 0};
}

/// From one lap's end to the next one's.
double period_of(const std::vector<PlayedLap>& laps) {
  return laps.back().end - laps[laps.size() - 2].end;
}

/// What the last lap did, beside what the one before it did one period earlier.
Window last_window(const PlayedLaps& played, const LapTrace& trace) {
  const std::size_t usual = played.laps.size() - 1;
  const double period = period_of(played.laps);
  std::vector<Interval> kernels;
  std::vector<Call> calls;
  for (const PlayedWork& work : played.works) {
    const LapTrace::OfWork of = trace.of(work);
    if (of.lap != usual) continue;
    for (const double shift : {0.0, period}) {
      const Interval ran{work.start - shift, work.end - shift};
      if (of.axis_group) {
        calls.push_back({ran, *of.axis_group});
      } else {
        kernels.push_back(ran);
      }
    }
  }
  return Window(std::move(kernels), std::move(calls));
}

UsualLap usual_lap(const PlayedLaps& played, const LapTrace& trace) {
  const std::vector<PlayedLap>& laps = played.laps;
  const std::size_t usual = laps.size() - 1;
  const double period = period_of(laps);
  const Window window = last_window(played, trace);
  const double end = laps[usual].main_end, begin = end - period;
  const double forward_end = std::max(laps[usual].forward_end, begin);
  return {.forward = window.between(begin, forward_end),
          .backward = window.between(forward_end, end),
          .period = period,
          .laps = laps};
}

PartTime usual_pair(const PlayedLaps& played, const LapTrace& trace) {
  const double end = played.laps.back().end;
  return last_window(played, trace).between(end - period_of(played.laps), end);
}

/// The usual lap that is shown.
constexpr std::size_t kShownLap = 2;

/// The forward of a usual lap and the backward of the last one.
std::vector<MicroBatchWork> shown_works(const PlayedLaps& played, const LapTrace& trace) {
  const std::vector<PlayedLap>& laps = played.laps;
  const std::size_t usual = kShownLap, last = std::min(usual + 1, laps.size() - 1);
  std::vector<MicroBatchWork> works;
  for (const PlayedWork& work : played.works) {
    const LapTrace::OfWork of = trace.of(work);
    const bool is_forward = of.direction == Direction::kForward;
    const bool is_at_end = of.lap > usual && of.lap + 1 == laps.size();
    if (of.lap != (is_forward ? usual : last) && !is_at_end) continue;
    const double part = is_forward ? laps[usual - 1].main_end
                                   : std::max(laps[last].forward_end, laps[last - 1].main_end);
    works.push_back({.event = of.place, .begin = work.start - part, .end = work.end - part});
  }
  return works;
}

std::vector<PlayedLap> laps_of(const PlayedLaps& played, const LapTrace& /*trace*/) {
  return played.laps;
}

}  // namespace

/// The lap from which on nothing changes any more: the first, where none begins before all of the
/// one before it has ended.
std::size_t settled_lap(const HostWaits& waits) {
  return waits.at_ends_of_parts || waits.at_ends_of_micro_batches ? 0 : 2;
}

class PairPlayer::Laps {
 public:
  Laps(const StepOrder& order,
       const PricedRecords& records,
       const ChunkPair& pair,
       const HostWaits& waits,
       bool attention_released_early)
      : pair_(pair),
        waits_(waits),
        pairs_(laps(order,
                    records,
                    combined_events(order.events,
                                    ChunkOrder(order.events, pair.forward_chunk).forward,
                                    ChunkOrder(order.events, pair.backward_chunk).backward,
                                    attention_released_early)),
               0,
               usual_pair) {}

  PartTime play(const PricedRecords& records) { return pairs_.with(records); }
  bool plays(const ChunkPair& pair, const HostWaits& waits) const {
    return pair_ == pair && waits_ == waits;
  }

 private:
  LapTrace laps(const StepOrder& order,
                const PricedRecords& records,
                const LapEvents& events) const {
    LapTrace trace(order, records, waits_);
    for (std::size_t lap = 0; lap <= std::max<std::size_t>(settled_lap(waits_), 1); ++lap) {
      trace.add_combined(events);
    }
    return trace;
  }

  const ChunkPair pair_;
  const HostWaits waits_;
  LapSeries<PartTime> pairs_;
};

PairPlayer::PairPlayer(const StepOrder& order,
                       const PricedRecords& records,
                       const ChunkPair& pair,
                       const HostWaits& waits,
                       bool attention_released_early)
    : laps_(std::make_unique<Laps>(order, records, pair, waits, attention_released_early)) {}
PairPlayer::~PairPlayer() = default;
PairPlayer::PairPlayer(PairPlayer&&) noexcept = default;
PairPlayer& PairPlayer::operator=(PairPlayer&&) noexcept = default;

PartTime PairPlayer::play(const PricedRecords& records) { return laps_->play(records); }
bool PairPlayer::plays(const ChunkPair& pair, const HostWaits& waits) const {
  return laps_->plays(pair, waits);
}

class ChunkPlayer::Laps {
 public:
  Laps(const StepOrder& order, const PricedRecords& records, int64_t chunk, const HostWaits& waits)
      : order_(order),
        chunk_(chunk),
        waits_(waits),
        own_(order.events, chunk),
        usual_(usual_laps(records, std::max<std::size_t>(settled_, 1) + 1), 0, usual_lap),
        reducing_(reducing_laps(records, settled_), 0, laps_of),
        lead_(waits.before_step.value_or(usual_.trace().host_seconds())),
        first_(first_laps(records, lead_ != 0, own_.forward), lead_, laps_of),
        gathering_(
            first_laps(records, gathers(), merged(own_.gathers, own_.forward)), lead_, laps_of) {}

  bool plays(int64_t chunk, const HostWaits& waits) const {
    return chunk_ == chunk && waits_ == waits;
  }

  ChunkReplay play(const PricedRecords& records, bool keep_works) {
    const UsualLap& usual = usual_.with(records);
    const double alone = lead_ == 0 ? usual.laps.front().end : first_.with(records).front().end;
    ChunkReplay result{.forward = usual.forward,
                       .backward = usual.backward,
                       .first_added_seconds = std::max(0.0, alone - usual.period)};
    if (reduces()) {
      result.reduction = reduction_time(reducing_.with(records), settled_, usual);
    }
    if (gathers()) {
      const PlayedLap& first = gathering_.with(records).front();
      result.gathers = {.seconds = first.call_seconds,
                        .added_seconds = std::max(0.0, first.end - alone)};
    }
    if (keep_works) {
      const LapTrace trace = reducing_laps(records, kShownLap + 1);
      result.works = shown_works(trace.play(trace.prices(records), 0), trace);
    }
    return result;
  }

 private:
  bool gathers() const { return !own_.gathers.empty(); }
  bool reduces() const { return !own_.beside.empty() || !own_.at_end.empty(); }

  LapTrace usual_laps(const PricedRecords& records, std::size_t laps) const {
    LapTrace trace(order_, records, waits_);
    for (std::size_t lap = 0; lap < laps; ++lap) {
      trace.add_micro_batch(own_.forward, own_.backward);
    }
    return trace;
  }

  /// `usual` ones, then the step's last one, another that runs beside what is left of its
  /// reductions (there is none after the stage's first chunk, whose backward comes last), and the
  /// step's end.
  LapTrace reducing_laps(const PricedRecords& records, std::size_t usual) const {
    LapTrace trace = usual_laps(records, usual);
    if (!reduces()) return trace;
    trace.add_micro_batch(own_.forward, merged(own_.backward, own_.beside));
    if (chunk_ > 0) trace.add_micro_batch(own_.forward, own_.backward);
    trace.add_end_of(usual, own_.at_end);
    return trace;
  }

  /// The step's first one, beside another; none if it is not asked for.
  LapTrace first_laps(const PricedRecords& records,
                      bool is_wanted,
                      const LapEvents& forward) const {
    LapTrace trace(order_, records, waits_);
    if (!is_wanted) return trace;
    trace.add_micro_batch(forward, own_.backward);
    trace.end_here();
    trace.add_micro_batch(own_.forward, own_.backward);
    return trace;
  }

  const StepOrder& order_;
  const int64_t chunk_;
  const HostWaits waits_;
  const ChunkOrder own_;
  const std::size_t settled_ = settled_lap(waits_);
  LapSeries<UsualLap> usual_;
  LapSeries<std::vector<PlayedLap>> reducing_;
  double lead_;
  LapSeries<std::vector<PlayedLap>> first_, gathering_;
};

ChunkPlayer::ChunkPlayer(const StepOrder& order,
                         const PricedRecords& records,
                         int64_t chunk,
                         const HostWaits& waits)
    : laps_(std::make_unique<Laps>(order, records, chunk, waits)) {}
ChunkPlayer::~ChunkPlayer() = default;
ChunkPlayer::ChunkPlayer(ChunkPlayer&&) noexcept = default;
ChunkPlayer& ChunkPlayer::operator=(ChunkPlayer&&) noexcept = default;

ChunkReplay ChunkPlayer::play(const PricedRecords& records, bool keep_works) {
  return laps_->play(records, keep_works);
}

bool ChunkPlayer::plays(int64_t chunk, const HostWaits& waits) const {
  return laps_->plays(chunk, waits);
}

ChunkReplay replay_chunk(const StepOrder& order,
                         const PricedRecords& records,
                         int64_t chunk,
                         const HostWaits& waits,
                         bool keep_works) {
  return ChunkPlayer(order, records, chunk, waits).play(records, keep_works);
}

}  // namespace estimator
