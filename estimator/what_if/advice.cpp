#include "estimator/what_if/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include "estimator/base/units.h"
#include "estimator/resolve/resolve_plan.h"
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
  std::vector<PlanChange> changes;  ///< the last of each kind
  PlanEdits edits;

  PlanSpec spec() const { return said->with(edits); }
  bool is_basic() const {
    return std::any_of(changes.begin(), changes.end(), [](const auto& c) { return c.is_basic; });
  }
  /// "full recompute and ZeRO stage 1"; "" without changes.
  std::string made() const {
    std::vector<std::string> texts;
    for (const PlanChange& change : changes) texts.push_back(change.text);
    return fmt::format("{}", fmt::join(texts, " and "));
  }
  Base with(const PlanChange& change) const {
    Base base{said, changes, merged(edits, change.edits)};
    std::erase_if(base.changes, [&](const PlanChange& c) { return c.kind == change.kind; });
    base.changes.push_back(change);
    return base;
  }
};

struct TriedChange {
  Base base;  ///< with the change
  FitAnswer answer;
  std::size_t kind = 0;  ///< of the change
  bool was_run = true;   ///< else its peak is what arithmetic says of the state

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

bool was_run_and_is_faster(const TriedChange& a, const TriedChange& b) {
  return a.was_run && (!b.was_run || is_faster(a, b));
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

/// Without the steps after which the state alone is still too large.
void leave_out_hopeless(ChangeLadder& ladder) {
  std::erase_if(ladder, [](const PlanChange& step) { return state_alone_is_too_large(step.plan); });
}

class Adviser {
 public:
  Adviser(const ClusterEstimate& before, const PlanRunner& runner)
      : before_(before), runner_(runner), likely_stage_(worst_stage(before)) {}

  std::vector<Advice> make_it_fit(const PlanSpec& spec) const {
    const Base as_said{&spec, {}, {}};
    std::vector<TriedChange> single = try_all(as_said, memory_saving_changes(spec));
    std::vector<TriedChange> fitting = fitting_of(single);
    if (fitting.empty()) {
      complete(single);
      fitting = fastest(fitting_of(try_pairs(single)), kMostPairsTold);
    }
    std::vector<TriedChange> tried = single;
    for (int made = 1; made < kMostChangesAtOnce && fitting.empty() && !tried.empty(); ++made) {
      complete(tried);
      tried = try_more(tried);
      fitting = fitting_of(tried);
    }
    add_cheaper(as_said, fitting);
    if (!fitting.empty()) return listed(std::move(fitting), is_faster);
    std::erase_if(single, [&](const TriedChange& t) { return !t.was_run || saved_bytes(t) <= 0; });
    return listed(std::move(single), needs_less);
  }

  /// Of a plan that fits.
  std::vector<Advice> make_it_better(const PlanSpec& spec) const {
    std::vector<ChangeLadder> ladders = time_saving_changes(spec);
    for (ChangeLadder& ladder : memory_saving_changes(spec)) ladders.push_back(std::move(ladder));
    std::vector<TriedChange> fitting = fitting_of(try_all({&spec, {}, {}}, ladders));
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
    const PlanChange last = ladder.back();
    leave_out_hopeless(ladder);
    if (ladder.empty()) return without_run(base, last);
    FirstThatFits found = first_that_fits(ladder.size(), [&](std::size_t step) {
      if (runner_.announce) runner_.announce(base.with(ladder[step]).made());
      return probe(ladder[step].plan);
    });
    const PlanChange& change = ladder[found.step];
    return {base.with(change), std::move(found.answer), change.kind};
  }

  /// Of a change after which the state alone is still too large.
  TriedChange without_run(const Base& base, const PlanChange& change) const {
    const int64_t saved = least_bytes(resolve_plan(*base.said)) - least_bytes(change.plan);
    const FitAnswer answer{.fit = Fit::kDoesNotFit,
                           .peak_bytes = before_.verdict.peak_bytes - saved,
                           .estimate = std::nullopt};
    return {base.with(change), answer, change.kind, false};
  }

  std::vector<TriedChange> try_all(const Base& base,
                                   const std::vector<ChangeLadder>& ladders) const {
    std::vector<TriedChange> tried;
    tried.reserve(ladders.size());
    for (const ChangeLadder& ladder : ladders) tried.push_back(try_ladder(base, ladder));
    return tried;
  }

  /// One more change to what needs least, and to what is fastest of what was run.
  std::vector<TriedChange> try_more(const std::vector<TriedChange>& tried) const {
    std::vector<const TriedChange*> bases{
        &*std::min_element(tried.begin(), tried.end(), needs_less)};
    const auto first = std::min_element(tried.begin(), tried.end(), was_run_and_is_faster);
    if (first->was_run && &*first != bases.front()) bases.push_back(&*first);
    std::vector<TriedChange> more;
    for (const TriedChange* t : bases) {
      std::vector<TriedChange> all = try_all(t->base, memory_saving_changes(t->base.spec()));
      std::move(all.begin(), all.end(), std::back_inserter(more));
    }
    return more;
  }

  /// The pairs with which the plan would fit if each change saved what it saves alone, the fastest
  /// first.
  std::vector<Pair> promising_pairs(const std::vector<TriedChange>& single) const {
    const int64_t to_save = before_.verdict.peak_bytes - before_.verdict.capacity_bytes;
    std::vector<Pair> pairs;
    for (auto later = single.begin(); later != single.end(); ++later) {
      for (auto earlier = single.begin(); earlier != later; ++earlier) {
        if (!earlier->was_run || !later->was_run) continue;
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
      if (!t.was_run || t.answer.estimate) continue;
      if (runner_.announce) runner_.announce(t.base.made());
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
      if (a.base.is_basic() != b.base.is_basic()) return a.base.is_basic();
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
    advice.text = tried.base.made() + ": " + outcome_text(answer, before_.verdict.capacity_bytes);
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
