#include "estimator/program/program_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "estimator/base/units.h"
#include "estimator/compute/flex_attention.h"
#include "estimator/program/program_flops.h"
#include "estimator/program/program_ranks.h"

namespace estimator {
namespace {

constexpr const char* kRecomputeIsHidden =
    "compiled code may run parts of the forward again in its backward, and not all of the model "
    "has gradients: these cannot be told apart, and count as the model's";

constexpr const char* kOptimizerOnCpu = "optimizer on the CPU";

struct StepNote {
  std::string_view recorded_with;
  const char* text;
};
constexpr StepNote kStepNotes[] = {
    {kWithCompilation,
     "code was compiled or loaded in the iteration that was recorded: what torch.compile and "
     "Triton launch to time their kernels is a part of this step. Let the program take more steps"},
    {kWithGraphCapture,
     "a CUDA graph was captured in the iteration that was recorded: a replay of it is faster. Let "
     "the program take more steps"},
    {kWithoutGraph,
     "the program captured CUDA graphs, and no iteration that launches one was recorded whole: the "
     "step may be faster, and need other memory. Let the program take more steps"},
    {kWithOtherSteps,
     "the optimizers do not step in the same order in every iteration: this is the step of one of "
     "them"},
    {kWithOtherCalls,
     "the iteration that was recorded called other collectives than its neighbours (those of a "
     "log or a check, or of DistributedDataParallel, which lays out its buckets anew once): step "
     "and peak may not be those of training. Let the program take more steps"},
    {kWithMoreProducts,
     "the iteration that was recorded has many more products outside its optimizer's step than "
     "one beside it, as if the program evaluated or generated in it: a step without that is "
     "shorter. Let the program take more steps"},
    {kWithLessWork,
     "iterations behind the one that was recorded multiplied much more (larger batches, longer "
     "texts, or another model): their steps are longer than this one. Run the program with their "
     "size alone for their step time"},
};

/// In the order of the table, once each.
std::vector<std::string> step_notes(const std::vector<ReplayRank>& ranks) {
  std::vector<std::string> notes;
  for (const StepNote& note : kStepNotes) {
    const bool is_so = std::any_of(ranks.begin(), ranks.end(), [&](const ReplayRank& rank) {
      const auto& with = rank.profile->program->recorded_with;
      return std::find(with.begin(), with.end(), note.recorded_with) != with.end();
    });
    if (is_so) notes.emplace_back(note.text);
  }
  return notes;
}

// Assumed: a shorter wait is no more than the turns of other programs on this machine.
constexpr double kLeastWaitSeconds = 5e-3;
constexpr double kLeastWaitOfStep = 0.1;

/// A host that issues faster than its GPU works hides what it waits for.
std::optional<std::string> note_on_waits(const RankProfile& profile, double step_seconds) {
  ProgramWaits waits;
  double seconds = 0;
  const std::string name = fmt::format("iteration_{}.", profile.program->recorded_iteration);
  for (const PhaseRecord& phase : profile.phases) {
    if (!phase.name.starts_with(name)) continue;
    seconds += phase.seconds;
    const ProgramWaits of_phase = phase.waits.value_or(ProgramWaits{});
    waits.sleeping_seconds += of_phase.sleeping_seconds;
    waits.loading_seconds += of_phase.loading_seconds;
  }
  const double waited = waits.sleeping_seconds + waits.loading_seconds;
  const double least = std::max(kLeastWaitSeconds, kLeastWaitOfStep * step_seconds);
  if (waited < least || seconds < step_seconds) return std::nullopt;
  std::vector<std::string> parts;
  if (waits.sleeping_seconds > 0) {
    parts.push_back("slept for " + format_duration(waits.sleeping_seconds));
  }
  if (waits.loading_seconds > 0) {
    parts.push_back("waited for its data loader for " + format_duration(waits.loading_seconds));
  }
  return fmt::format(
      "in the iteration that was recorded the program {} of this machine's time: the step leaves "
      "this out, and may take longer",
      fmt::join(parts, " and "));
}

/// Empty if every mask was known.
std::vector<std::string> notes_on_masks(const ProgramTime& time) {
  if (time.unknown_masks.empty() || time.iteration_seconds <= 0) return {};
  double seconds = 0;
  for (const WorkTerm& term : time.unknown_masks) seconds += term.seconds;
  return {fmt::format(
      "at most: flex_attention with masks that are not known takes {:.1f} % of it if they leave "
      "all blocks; with fewer the step is shorter, and its FLOPs and tokens/s are others",
      100 * seconds / time.iteration_seconds)};
}

/// Seconds in which at least one of some spans runs, within a window.
class Cover {
 public:
  Cover(double from, double until) : from_(from), until_(until) {}

  void add(double start, double end) {
    start = std::max(start, from_);
    end = std::min(end, until_);
    if (start < end) spans_.push_back({start, end});
  }
  double seconds() {
    std::sort(spans_.begin(), spans_.end());
    double covered = 0;
    double last = from_;
    for (const auto& [start, end] : spans_) {
      covered += std::max(0.0, end - std::max(start, last));
      last = std::max(last, end);
    }
    return covered;
  }

 private:
  const double from_;
  const double until_;
  std::vector<std::pair<double, double>> spans_;
};

void add_to(WorkTerm& term, const PlayedWork& played, double flops) {
  ++term.launches;
  term.seconds += played.end - played.start;
  term.flops += flops;
}

/// What an optimizer does on the CPU, between the works of the GPU.
std::optional<WorkTerm> updates_of(const ReplayRank& rank) {
  const auto& kinds = rank.profile->trace->events.kind;
  WorkTerm term{.name = kOptimizerOnCpu};
  for (std::size_t event = 0; event < kinds.size(); ++event) {
    if (kinds[event] != static_cast<int64_t>(TraceEventKind::kHostUpdates)) continue;
    ++term.launches;
    term.seconds += update_seconds(rank, static_cast<int64_t>(event));
  }
  return term.launches > 0 ? std::optional(term) : std::nullopt;
}

RankTime rank_time(const ReplayRank& rank, const PlayedRank& played) {
  Cover computation(played.iteration_start, played.iteration_end);
  Cover all(played.iteration_start, played.iteration_end);
  std::map<WorkClass, WorkTerm> terms;
  for (const PlayedWork& work : played.works) {
    const WorkClass work_class = price_of(rank, work).work_class;
    if (work_class != WorkClass::kCommunication) computation.add(work.start, work.end);
    all.add(work.start, work.end);
    WorkTerm& term = terms[work_class];
    term.name = to_string(work_class);
    add_to(term, work, work_of(rank, work).flops);
  }
  RankTime time{.rank = rank.profile->rank,
                .computation_seconds = computation.seconds(),
                .host_seconds = played.host_seconds};
  const double busy = all.seconds();
  time.exposed_communication_seconds = busy - time.computation_seconds;
  time.idle_seconds = played.iteration_seconds() - busy;
  for (auto& [work_class, term] : terms) time.terms.push_back(std::move(term));
  if (auto updates = updates_of(rank)) {
    time.host_seconds -= updates->seconds;
    time.terms.push_back(std::move(*updates));
  }
  return time;
}

/// Of the first rank, largest first.
template <class Choose>
std::vector<WorkTerm> kernels_that(const ReplayRank& rank,
                                   const PlayedRank& played,
                                   const Choose& are_chosen) {
  std::map<std::string, WorkTerm> terms;
  for (const PlayedWork& work : played.works) {
    const TraceWork& described = work_of(rank, work);
    if (!are_chosen(described, price_of(rank, work))) continue;
    WorkTerm& term = terms[described.name];
    term.name = described.name;
    add_to(term, work, described.flops);
  }
  std::vector<WorkTerm> sorted;
  sorted.reserve(terms.size());
  for (auto& [name, term] : terms) sorted.push_back(std::move(term));
  std::stable_sort(sorted.begin(), sorted.end(), [](const WorkTerm& a, const WorkTerm& b) {
    return a.seconds > b.seconds;
  });
  return sorted;
}

void add_rates_of_updates(ProgramTime& time) {
  const bool any = std::any_of(time.ranks.begin(), time.ranks.end(), [](const RankTime& rank) {
    return !rank.terms.empty() && rank.terms.back().name == kOptimizerOnCpu;
  });
  if (!any) return;
  for (RateTerm& term : cpu_optimizer_terms()) time.rates.push_back(std::move(term));
}

}  // namespace

std::optional<std::string> lacks_time(const std::vector<RankProfile>& profiles) {
  std::string why;
  if (ranks_to_replay(profiles, why).empty()) return why;
  return std::nullopt;
}

ProgramTime program_time(const ProgramReplay& replayed) {
  const auto& ranks = replayed.ranks;
  const auto& played = replayed.played;
  ProgramTime time{.iteration_seconds = replayed.iteration_seconds(),
                   .rates = replayed.rates.terms(Dtype::kBf16, true)};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    time.ranks.push_back(rank_time(ranks[i], played[i]));
    time.ranks.back().board = replayed.boards[i];
    const ProgramFlops flops = program_flops(*ranks[i].profile);
    const auto count = static_cast<double>(ranks.size());
    time.flops += flops.executed / count;
    time.model_flops += flops.model / count;
    if (!flops.is_model_known) time.mfu_note = kRecomputeIsHidden;
  }
  add_rates_of_updates(time);
  time.step_notes = step_notes(ranks);
  const auto& peak = replayed.rates.gpu().peak_flops_per_second.bf16;
  if (peak && time.iteration_seconds > 0) {
    time.hfu = time.flops / time.iteration_seconds / *peak;
    time.mfu = time.model_flops / time.iteration_seconds / *peak;
  }
  time.priced_by_memory =
      kernels_that(ranks[0], played[0], [](const TraceWork& work, const WorkPrice&) {
        return work.bytes_source == BytesSource::kParameters;
      });
  time.unknown_lengths =
      kernels_that(ranks[0], played[0], [](const TraceWork& work, const WorkPrice&) {
        return work.has_unknown_lengths && !is_flex_attention(work.operator_name);
      });
  time.unknown_masks =
      kernels_that(ranks[0], played[0], [](const TraceWork& work, const WorkPrice&) {
        return work.has_unknown_lengths && is_flex_attention(work.operator_name);
      });
  if (auto note = note_on_waits(*ranks[0].profile, time.iteration_seconds)) {
    time.step_notes.push_back(std::move(*note));
  }
  for (std::string& note : notes_on_masks(time)) time.step_notes.push_back(std::move(note));
  time.between_ranks =
      kernels_that(ranks[0], played[0], [](const TraceWork& work, const WorkPrice&) {
        return work.kind == WorkKind::kSignal || work.name == kPeerToPeer || work.peer_bytes > 0;
      });
  time.not_priced = kernels_that(ranks[0], played[0], [](const TraceWork&, const WorkPrice& price) {
    return !price.is_known;
  });
  return time;
}

}  // namespace estimator
