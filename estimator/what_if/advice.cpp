#include "estimator/what_if/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include "estimator/base/units.h"
#include "estimator/what_if/least_bytes.h"
#include "estimator/what_if/plan_changes.h"
#include "estimator/what_if/typed_flags.h"

namespace estimator {
namespace {

constexpr int kMostChangesAtOnce = 3;
constexpr std::size_t kMostPairsRun = 8, kMostPairsTold = 4;

/// What was said, and the changes that are made to it already.
struct Base {
  const PlanSpec* said;
  std::string made;  ///< "full recompute"; "" without changes
  PlanEdits edits;
  bool is_basic = false;  ///< one of the changes is

  PlanSpec spec() const { return said->with(edits); }
  Base with(const PlanChange& change) const {
    return {said,
            made.empty() ? change.text : made + " and " + change.text,
            merged(edits, change.edits),
            is_basic || change.is_basic};
  }
};

struct TriedChange {
  Base base;  ///< with the change
  FitAnswer answer;
  std::size_t kind = 0;  ///< of the change

  double iteration_seconds() const { return answer.estimate->time.iteration_seconds; }
};

/// Shares of an iteration that count as little and as much, and of the GPU's memory.
constexpr double kLittleTime = 0.005, kMuchTime = 0.05, kMuchMemory = 0.05;

bool is_faster(const TriedChange& a, const TriedChange& b) {
  return a.iteration_seconds() < b.iteration_seconds();
}

bool needs_less(const TriedChange& a, const TriedChange& b) {
  return a.answer.peak_bytes < b.answer.peak_bytes;
}

std::vector<TriedChange> fitting_of(const std::vector<TriedChange>& tried) {
  std::vector<TriedChange> fitting;
  std::copy_if(tried.begin(), tried.end(), std::back_inserter(fitting), [](const TriedChange& t) {
    return t.answer.fits();
  });
  return fitting;
}

std::vector<TriedChange> fastest(std::vector<TriedChange> tried, std::size_t most) {
  std::stable_sort(tried.begin(), tried.end(), is_faster);
  if (tried.size() > most)
    tried.erase(tried.begin() + static_cast<std::ptrdiff_t>(most), tried.end());
  return tried;
}

struct Pair {
  const TriedChange* earlier;  ///< in the table of changes
  const TriedChange* later;
  double seconds;  ///< of both iterations
};

std::string outcome_text(const FitAnswer& answer, int64_t capacity_bytes) {
  const int64_t free = capacity_bytes - answer.peak_bytes;
  switch (answer.fit) {
    case Fit::kFits:
      return fmt::format("fits, and leaves {}", format_gib(free));
    case Fit::kTooClose:
      return "too close to call";
    case Fit::kDoesNotFit:
      return fmt::format("still {} too much", format_gib(std::max<int64_t>(-free, 0)));
  }
  throw std::logic_error("unknown verdict");
}

/// Without the first steps after which the state alone is still too large, but for the last one,
/// which tells how much the change saves.
void leave_out_hopeless(ChangeLadder& ladder) {
  const auto hopeful = std::find_if(ladder.begin(), std::prev(ladder.end()), [](const auto& step) {
    return !state_alone_is_too_large(step.plan);
  });
  ladder.erase(ladder.begin(), hopeful);
}

/// The changes to begin with: where the state alone is too large, those that make it smaller.
std::vector<ChangeLadder> hopeful_changes(const PlanSpec& spec) {
  std::vector<ChangeLadder> ladders = memory_saving_changes(spec);
  const Plan plan = resolve_plan(spec);
  if (!state_alone_is_too_large(plan)) return ladders;
  std::erase_if(ladders, [least = least_bytes(plan)](const ChangeLadder& ladder) {
    return least_bytes(ladder.back().plan) >= least;
  });
  return ladders;
}

class Adviser {
 public:
  Adviser(const ClusterEstimate& before, const PlanRunner& runner)
      : before_(before), runner_(runner), likely_stage_(worst_stage(before)) {}

  std::vector<Advice> make_it_fit(const PlanSpec& spec) const {
    const Base as_said{&spec, "", {}};
    std::vector<TriedChange> single = try_all(as_said, hopeful_changes(spec));
    std::vector<TriedChange> fitting = fitting_of(single);
    if (fitting.empty()) {
      complete(single);
      fitting = fastest(fitting_of(try_pairs(single)), kMostPairsTold);
    }
    std::vector<TriedChange> tried = single;
    for (int made = 1; made < kMostChangesAtOnce && fitting.empty() && !tried.empty(); ++made) {
      complete(tried);
      const Base base = std::min_element(tried.begin(), tried.end(), needs_less)->base;
      tried = try_all(base, memory_saving_changes(base.spec()));
      fitting = fitting_of(tried);
    }
    add_cheaper(as_said, fitting);
    if (!fitting.empty()) return listed(std::move(fitting), is_faster);
    std::erase_if(single, [&](const TriedChange& t) { return saved_bytes(t) <= 0; });
    return listed(std::move(single), needs_less);
  }

  /// Of a plan that fits.
  std::vector<Advice> make_it_better(const PlanSpec& spec) const {
    std::vector<ChangeLadder> ladders = time_saving_changes(spec);
    for (ChangeLadder& ladder : memory_saving_changes(spec)) ladders.push_back(std::move(ladder));
    std::vector<TriedChange> fitting = fitting_of(try_all({&spec, "", {}}, ladders));
    std::erase_if(fitting, [&](const TriedChange& t) {
      return saved_bytes(t) <= 0 && t.iteration_seconds() >= before_.time.iteration_seconds;
    });
    return listed(std::move(fitting), is_faster);
  }

 private:
  int64_t saved_bytes(const TriedChange& tried) const {
    return before_.verdict.peak_bytes - tried.answer.peak_bytes;
  }

  FitAnswer probe(const Plan& plan) const { return probe_fit(plan, likely_stage_, runner_); }

  TriedChange try_ladder(const Base& base, ChangeLadder ladder) const {
    leave_out_hopeless(ladder);
    FirstThatFits found = first_that_fits(ladder.size(), [&](std::size_t step) {
      if (runner_.announce) runner_.announce(base.with(ladder[step]).made);
      return probe(ladder[step].plan);
    });
    const PlanChange& change = ladder[found.step];
    return {base.with(change), std::move(found.answer), change.kind};
  }

  std::vector<TriedChange> try_all(const Base& base,
                                   const std::vector<ChangeLadder>& ladders) const {
    std::vector<TriedChange> tried;
    tried.reserve(ladders.size());
    for (const ChangeLadder& ladder : ladders) tried.push_back(try_ladder(base, ladder));
    return tried;
  }

  /// The pairs with which the plan would fit if each change saved what it saves alone, the fastest
  /// first.
  std::vector<Pair> promising_pairs(const std::vector<TriedChange>& single) const {
    const int64_t to_save = before_.verdict.peak_bytes - before_.verdict.capacity_bytes;
    std::vector<Pair> pairs;
    for (auto later = single.begin(); later != single.end(); ++later) {
      for (auto earlier = single.begin(); earlier != later; ++earlier) {
        if (saved_bytes(*earlier) + saved_bytes(*later) < to_save) continue;
        pairs.push_back(
            {&*earlier, &*later, earlier->iteration_seconds() + later->iteration_seconds()});
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return a.seconds < b.seconds;
    });
    return pairs;
  }

  /// `single` must be complete. The later change of a pair is made first: of the earlier one, whose
  /// ladders are the longer ones, the first step that fits then is enough.
  std::vector<TriedChange> try_pairs(const std::vector<TriedChange>& single) const {
    std::vector<TriedChange> tried;
    for (const Pair& pair : promising_pairs(single)) {
      if (tried.size() == kMostPairsRun) break;
      const Base& base = pair.later->base;
      for (const ChangeLadder& ladder : memory_saving_changes(base.spec())) {
        if (ladder.front().kind == pair.earlier->kind) tried.push_back(try_ladder(base, ladder));
      }
    }
    return tried;
  }

  /// Runs all ranks of what was tried, so that its peaks compare.
  void complete(std::vector<TriedChange>& tried) const {
    for (TriedChange& t : tried) {
      if (t.answer.estimate) continue;
      if (runner_.announce) runner_.announce(t.base.made);
      complete_fit(resolve_plan(t.base.spec()), runner_, t.answer);
    }
  }

  /// All at once that costs no time, with as large a micro-batch as fits then: this may be faster
  /// than any single change.
  void add_cheaper(const Base& as_said, std::vector<TriedChange>& fitting) const {
    Base base = as_said;
    for (auto free = free_changes(base.spec()); !free.empty(); free = free_changes(base.spec())) {
      base = base.with(free.front());
    }
    if (base.edits.empty()) return;
    TriedChange tried{base, probe(resolve_plan(base.spec()))};
    const ChangeLadder smaller = smaller_micro_batches(base.spec());
    if (!tried.answer.fits() && !smaller.empty()) tried = try_ladder(base, smaller);
    if (!tried.answer.fits()) return;
    const bool is_fastest = std::all_of(
        fitting.begin(), fitting.end(), [&](const auto& other) { return is_faster(tried, other); });
    if (is_fastest) fitting.push_back(std::move(tried));
  }

  std::vector<Advice> listed(std::vector<TriedChange> tried,
                             bool (*comes_first)(const TriedChange&, const TriedChange&)) const {
    std::stable_sort(tried.begin(), tried.end(), [&](const TriedChange& a, const TriedChange& b) {
      const Priority of_a = priority_of(a), of_b = priority_of(b);
      if (of_a != of_b) return of_a < of_b;
      if (a.base.is_basic != b.base.is_basic) return a.base.is_basic;
      return comes_first(a, b);
    });
    std::vector<Advice> advice;
    advice.reserve(tried.size());
    for (const TriedChange& t : tried) advice.push_back(advice_of(t));
    return advice;
  }

  /// Of the iteration; 0 where the changed plan has no time, because it does not fit.
  double saved_time_share(const TriedChange& tried) const {
    const double before = before_.time.iteration_seconds;
    return tried.answer.estimate && before > 0 ? 1 - tried.iteration_seconds() / before : 0;
  }

  Priority priority_of(const TriedChange& tried) const {
    const double time = saved_time_share(tried);
    if (!before_.verdict.fits()) {
      if (!tried.answer.fits()) {
        return tried.answer.fit == Fit::kTooClose ? Priority::kMedium : Priority::kLow;
      }
      return time >= -kLittleTime ? Priority::kCritical : Priority::kHigh;
    }
    const double memory = static_cast<double>(saved_bytes(tried)) /
                          static_cast<double>(before_.verdict.capacity_bytes);
    if (time >= kMuchTime) return Priority::kHigh;
    const bool saves_memory = memory >= kMuchMemory && time >= -kLittleTime;
    return time >= kLittleTime || saves_memory ? Priority::kMedium : Priority::kLow;
  }

  Advice advice_of(const TriedChange& tried) const {
    const FitAnswer& answer = tried.answer;
    Advice advice;
    advice.priority = priority_of(tried);
    advice.edits = tried.base.edits;
    advice.text = tried.base.made + ": " + outcome_text(answer, before_.verdict.capacity_bytes);
    advice.flags = flags_to_type(tried.base.edits);
    advice.gain_bytes = saved_bytes(tried);
    if (answer.estimate)
      advice.gain_seconds = before_.time.iteration_seconds - tried.iteration_seconds();
    return advice;
  }

  const ClusterEstimate& before_;
  const PlanRunner& runner_;
  const int64_t likely_stage_;
};

}  // namespace

std::vector<Advice> advise(const PlanSpec& spec,
                           const ClusterEstimate& estimate,
                           const PlanRunner& runner) {
  const int64_t gpus = resolve_plan(spec).world_size();
  const bool lacks_gpus =
      can_offload_optimizer(spec) ? estimate.lacks_gpus_offloaded(gpus) : estimate.lacks_gpus(gpus);
  if (lacks_gpus) return {};
  const Adviser adviser(estimate, runner);
  return estimate.verdict.fits() ? adviser.make_it_better(spec) : adviser.make_it_fit(spec);
}

}  // namespace estimator
