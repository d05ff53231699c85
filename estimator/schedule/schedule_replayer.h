// The replay itself, for one or several sets of durations at the same time. Only
// schedule_replay.cpp and folded_replay.cpp include this; other code includes their headers.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "estimator/schedule/schedule_replay.h"

namespace estimator {

inline constexpr double kNotYet = std::numeric_limits<double>::infinity();
inline constexpr std::size_t kNoInputs = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t kStepKinds = 4;

/// One time for each of the variants that are replayed together.
template <std::size_t kLanes>
struct Times {
  std::array<double, kLanes> of{};

  Times& operator+=(const Times& other) {
    for (std::size_t i = 0; i < kLanes; ++i) of[i] += other.of[i];
    return *this;
  }
  friend Times operator+(Times a, const Times& b) { return a += b; }

  void wait_for(const Times& other) {
    for (std::size_t i = 0; i < kLanes; ++i) of[i] = std::max(of[i], other.of[i]);
  }
};

/// One chunk of one stage, and where it stands in the model.
template <std::size_t kLanes>
struct Chunk {
  std::array<Times<kLanes>, kStepKinds> seconds;
  Times<kLanes> send_forward, send_backward;
  std::size_t forwards_done = 0, backwards_done = 0;
  std::size_t own_inputs = 0;     ///< index of its first input
  std::size_t next_inputs = 0;    ///< the same of the next piece; kNoInputs on the last piece
  std::size_t before_inputs = 0;  ///< the same of the piece before; kNoInputs on the first piece
  std::size_t next_stage = 0, stage_before = 0;
};

/// What happens to a chunk once. It is not in Chunk, so that what every step reads stays small.
template <std::size_t kLanes>
struct ChunkOnce {
  Times<kLanes> parameters_ready, parameters_wait, last_backward_added;
};

/// A forward of one chunk together with backwards of the chunks of its stage.
template <std::size_t kLanes>
using PairTimes = std::vector<Times<kLanes>>;

/// The state of one stage: how far it has come in its list of steps.
template <std::size_t kLanes>
struct Stage {
  std::size_t next_step = 0, stop_step = 0;  ///< in the schedule
  std::size_t first_pair = 0;                ///< from there on pairs are combined, if they are
  Times<kLanes> clock, busy;
  double long_waits = 0;                     ///< seconds, of the first lane
  const Times<kLanes>* waits_for = nullptr;  ///< the input for which its next step waits
};

template <std::size_t kLanes>
class Replayer {
 public:
  using Durations = std::array<const std::vector<ChunkDuration>*, kLanes>;

  Replayer(const PipelineSchedule& schedule,
           const Durations& durations,
           const ReplayOptions& options)
      : schedule_(schedule),
        options_(options),
        micro_batches_(static_cast<std::size_t>(schedule.shape.micro_batches)),
        chunks_of_stage_(static_cast<std::size_t>(schedule.shape.chunks)) {
    const auto pieces = static_cast<std::size_t>(schedule.shape.virtual_stages());
    for (const std::vector<ChunkDuration>* lane : durations) {
      if (lane->size() == pieces) continue;
      throw std::logic_error("replay_schedule: one duration for each chunk of each stage");
    }
    Times<kLanes> not_yet;
    not_yet.of.fill(kNotYet);
    forward_inputs_.resize(pieces * micro_batches_, not_yet);
    backward_inputs_ = forward_inputs_;
    // The first piece has its tokens.
    std::fill_n(forward_inputs_.begin(), micro_batches_, Times<kLanes>{});
    for (std::size_t i = 0; i < pieces; ++i) place_chunk(i, durations);
    for (std::size_t s = 0; s + 1 < schedule.first_step.size(); ++s) {
      stages_.push_back({.next_step = schedule.first_step[s], .first_pair = first_pair(s)});
    }
    gradients_ready_.resize(pieces);
    if (options.keep_starts) starts_.resize(schedule.steps.size());
  }

  /// Runs every stage up to its step in `stops`. Returns whether all stages reached it.
  bool run_until(const std::vector<std::size_t>& stops) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].stop_step = stops[s];
      stages_[s].waits_for = nullptr;
      runnable_.push_back(s);
    }
    while (!runnable_.empty()) {
      const std::size_t s = runnable_.back();
      runnable_.pop_back();
      run_stage(stages_[s], s * chunks_of_stage_);
    }
    return std::all_of(stages_.begin(), stages_.end(), [](const Stage<kLanes>& stage) {
      return stage.next_step == stage.stop_step;
    });
  }

  /// Runs all stages to the end. Throws std::logic_error when the schedule waits for itself.
  void run() {
    const std::vector<std::size_t>& first = schedule_.first_step;
    if (!run_until({first.begin() + 1, first.end()})) {
      throw std::logic_error("the pipeline schedule waits for itself");
    }
  }

  std::vector<Times<kLanes>> clocks() const {
    std::vector<Times<kLanes>> clocks;
    for (const Stage<kLanes>& stage : stages_) clocks.push_back(stage.clock);
    return clocks;
  }

  std::vector<Times<kLanes>> busy() const {
    std::vector<Times<kLanes>> busy;
    for (const Stage<kLanes>& stage : stages_) busy.push_back(stage.busy);
    return busy;
  }

  std::vector<double> long_waits() const {
    std::vector<double> waits;
    for (const Stage<kLanes>& stage : stages_) waits.push_back(stage.long_waits);
    return waits;
  }

  /// Calls `visit(inputs, place)` for every input that has arrived and is not used yet, except the
  /// tokens of the first piece. Stops and returns false when a call returns false.
  template <class Visit>
  bool visit_waiting_inputs(const Visit& visit) {
    const auto visit_from =
        [&](std::vector<Times<kLanes>>& inputs, std::size_t begin, std::size_t micro_batch) {
          for (; micro_batch < micro_batches_; ++micro_batch) {
            if (inputs[begin + micro_batch].of[0] == kNotYet) return true;
            if (!visit(inputs, begin + micro_batch)) return false;
          }
          return true;
        };
    for (const Chunk<kLanes>& chunk : chunks_) {
      const bool first = chunk.before_inputs == kNoInputs;
      if (!first && !visit_from(forward_inputs_, chunk.own_inputs, chunk.forwards_done)) {
        return false;
      }
      if (!visit_from(backward_inputs_, chunk.own_inputs, chunk.backwards_done)) return false;
    }
    return true;
  }

  /// Skips `seconds`, in which each stage is so busy and has such long waits.
  void pass(const Times<kLanes>& seconds,
            const std::vector<Times<kLanes>>& busy,
            const std::vector<double>& long_waits) {
    visit_waiting_inputs([&](std::vector<Times<kLanes>>& inputs, std::size_t place) {
      inputs[place] += seconds;
      return true;
    });
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].clock += seconds;
      stages_[s].busy += busy[s];
      stages_[s].long_waits += long_waits[s];
    }
  }

  ScheduleReplay result(std::size_t lane) const {
    ScheduleReplay replay;
    for (const Stage<kLanes>& stage : stages_) {
      replay.stages.push_back({.end_seconds = stage.clock.of[lane],
                               .busy_seconds = stage.busy.of[lane],
                               .long_wait_seconds = stage.long_waits});
    }
    const auto copy = [lane](const std::vector<Times<kLanes>>& times, std::vector<double>& to) {
      for (const Times<kLanes>& time : times) to.push_back(time.of[lane]);
    };
    copy(gradients_ready_, replay.gradients_ready_seconds);
    copy(starts_, replay.start_seconds);
    return replay;
  }

 private:
  void place_chunk(std::size_t i, const Durations& durations) {
    const ScheduleShape& shape = schedule_.shape;
    const int64_t piece = virtual_stage(shape,
                                        static_cast<int64_t>(i / chunks_of_stage_),
                                        static_cast<int64_t>(i % chunks_of_stage_));
    const auto inputs_of = [&](int64_t of) {
      const bool exists = of >= 0 && of < shape.virtual_stages();
      return exists ? static_cast<std::size_t>(of) * micro_batches_ : kNoInputs;
    };
    const auto holder_of = [&](int64_t of) {
      return static_cast<std::size_t>(
          stage_of(shape, std::clamp<int64_t>(of, 0, shape.virtual_stages() - 1)));
    };
    ChunkOnce<kLanes> once;
    Chunk<kLanes> chunk{.own_inputs = inputs_of(piece),
                        .next_inputs = inputs_of(piece + 1),
                        .before_inputs = inputs_of(piece - 1),
                        .next_stage = holder_of(piece + 1),
                        .stage_before = holder_of(piece - 1)};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const ChunkDuration& duration = (*durations[lane])[i];
      for (std::size_t kind = 0; kind < kStepKinds; ++kind) {
        chunk.seconds[kind].of[lane] = step_seconds(duration, static_cast<StepKind>(kind));
      }
      chunk.send_forward.of[lane] = duration.send_forward_seconds;
      chunk.send_backward.of[lane] = duration.send_backward_seconds;
      once.parameters_ready.of[lane] = duration.parameters_ready_seconds;
      once.parameters_wait.of[lane] = duration.parameters_wait_seconds;
      once.last_backward_added.of[lane] = duration.last_backward_added_seconds;
    }
    chunks_.push_back(chunk);
    once_.push_back(once);
    if (!schedule_.shape.combines_pairs) return;
    PairTimes<kLanes>& pairs = pairs_.emplace_back(chunks_of_stage_);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::vector<double>& seconds = (*durations[lane])[i].pair_seconds;
      for (std::size_t c = 0; c < seconds.size(); ++c) pairs[c].of[lane] = seconds[c];
    }
  }

  std::size_t first_pair(std::size_t stage) const {
    if (!schedule_.shape.combines_pairs) return std::numeric_limits<std::size_t>::max();
    const int64_t warm_up = warm_up_forwards(schedule_.shape, static_cast<int64_t>(stage));
    return schedule_.first_step[stage] + static_cast<std::size_t>(warm_up);
  }

  const Times<kLanes>& arrival_of(const PipelineStep& step, const Chunk<kLanes>& chunk) const {
    const std::size_t input = chunk.own_inputs + static_cast<std::size_t>(step.micro_batch);
    return step.kind == StepKind::kForward ? forward_inputs_[input] : backward_inputs_[input];
  }

  /// Whether both inputs of the pair have come; it has run then.
  bool run_pair(Stage<kLanes>& stage, std::size_t first_chunk) {
    const PipelineStep steps[] = {schedule_.steps[stage.next_step],
                                  schedule_.steps[stage.next_step + 1]};
    double wait = 0;
    for (const PipelineStep& step : steps) {
      const Times<kLanes>& arrival =
          arrival_of(step, chunks_[first_chunk + static_cast<std::size_t>(step.chunk)]);
      if (arrival.of[0] == kNotYet) {
        stage.waits_for = &arrival;
        return false;
      }
      wait = std::max(wait, arrival.of[0] - stage.clock.of[0]);
    }
    if (wait >= options_.long_wait_seconds) stage.long_waits += wait;
    for (const PipelineStep& step : steps) {
      Chunk<kLanes>& chunk = chunks_[first_chunk + static_cast<std::size_t>(step.chunk)];
      stage.clock.wait_for(arrival_of(step, chunk));
      ++(step.kind == StepKind::kForward ? chunk.forwards_done : chunk.backwards_done);
    }
    for (const std::size_t next : {stage.next_step, stage.next_step + 1}) {
      if (options_.keep_starts) starts_[next] = stage.clock;
    }
    const Times<kLanes>& seconds = pairs_[first_chunk + static_cast<std::size_t>(steps[0].chunk)]
                                         [static_cast<std::size_t>(steps[1].chunk)];
    stage.clock += seconds;
    stage.busy += seconds;
    ++stage.next_step;
    for (const PipelineStep& step : steps) {
      hand_on(stage, first_chunk + static_cast<std::size_t>(step.chunk), step);
    }
    return true;
  }

  /// Runs steps until the stage is done or must wait for an input.
  void run_stage(Stage<kLanes>& stage, std::size_t first_chunk) {
    for (; stage.next_step < stage.stop_step; ++stage.next_step) {
      const PipelineStep step = schedule_.steps[stage.next_step];
      if (stage.next_step >= stage.first_pair && step.kind == StepKind::kForward) {
        if (!run_pair(stage, first_chunk)) return;
        continue;
      }
      const std::size_t c = first_chunk + static_cast<std::size_t>(step.chunk);
      Chunk<kLanes>& chunk = chunks_[c];
      const std::size_t input = chunk.own_inputs + static_cast<std::size_t>(step.micro_batch);
      if (step.kind != StepKind::kBackwardWeight) {
        const Times<kLanes>& arrival =
            step.kind == StepKind::kForward ? forward_inputs_[input] : backward_inputs_[input];
        if (arrival.of[0] == kNotYet) {
          stage.waits_for = &arrival;
          return;
        }
        const double wait = arrival.of[0] - stage.clock.of[0];
        if (wait >= options_.long_wait_seconds) stage.long_waits += wait;
        stage.clock.wait_for(arrival);
      }
      if (step.kind == StepKind::kForward && step.micro_batch == 0) {
        stage.clock.wait_for(once_[c].parameters_ready);
        stage.clock += once_[c].parameters_wait;
      }
      if (options_.keep_starts) starts_[stage.next_step] = stage.clock;
      const Times<kLanes>& seconds = chunk.seconds[static_cast<std::size_t>(step.kind)];
      stage.clock += seconds;
      stage.busy += seconds;
      if (step.kind == StepKind::kForward) ++chunk.forwards_done;
      if (step.kind == StepKind::kBackward || step.kind == StepKind::kBackwardInput) {
        ++chunk.backwards_done;
      }
      hand_on(stage, c, step);
    }
  }

  void hand_on(Stage<kLanes>& stage, std::size_t c, PipelineStep step) {
    const Chunk<kLanes>& chunk = chunks_[c];
    const auto i = static_cast<std::size_t>(step.micro_batch);
    if (step.kind == StepKind::kForward) {
      if (chunk.next_inputs == kNoInputs) {
        backward_inputs_[chunk.own_inputs + i] = stage.clock;  // the loss is here
      } else {
        send(stage, chunk.send_forward, forward_inputs_[chunk.next_inputs + i], chunk.next_stage);
      }
      return;
    }
    if (completes_gradients(step, schedule_.shape)) {
      stage.clock += once_[c].last_backward_added;
      stage.busy += once_[c].last_backward_added;
    }
    if (step.kind != StepKind::kBackwardInput) gradients_ready_[c] = stage.clock;
    if (step.kind == StepKind::kBackwardWeight || chunk.before_inputs == kNoInputs) return;
    send(stage, chunk.send_backward, backward_inputs_[chunk.before_inputs + i], chunk.stage_before);
  }

  void send(Stage<kLanes>& stage,
            const Times<kLanes>& seconds,
            Times<kLanes>& arrival,
            std::size_t receiver) {
    arrival = stage.clock + seconds;
    if (!options_.overlap_sends) stage.clock = arrival;
    if (stages_[receiver].waits_for != &arrival) return;
    stages_[receiver].waits_for = nullptr;
    runnable_.push_back(receiver);
  }

  const PipelineSchedule& schedule_;
  const ReplayOptions options_;
  const std::size_t micro_batches_, chunks_of_stage_;
  std::vector<Times<kLanes>> forward_inputs_;   ///< when a micro-batch can go forward in a piece
  std::vector<Times<kLanes>> backward_inputs_;  ///< when it can go backward
  std::vector<Chunk<kLanes>> chunks_;
  std::vector<ChunkOnce<kLanes>> once_;   ///< of each chunk
  std::vector<PairTimes<kLanes>> pairs_;  ///< of each chunk, if pairs are combined
  std::vector<Stage<kLanes>> stages_;
  std::vector<std::size_t> runnable_;  ///< stages whose input has come
  std::vector<Times<kLanes>> gradients_ready_, starts_;
};

}  // namespace estimator
