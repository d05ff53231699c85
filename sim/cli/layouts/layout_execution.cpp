#include "sim/cli/layouts/layout_execution.h"

#include <algorithm>
#include <limits>
#include <random>

#include "estimator/what_if/search_result.h"
#include "sim/cli/jobs/many_plans.h"

namespace sim {
namespace {

using estimator::Fit;
using estimator::Layout;
using estimator::Layouts;
using estimator::Plan;

constexpr std::size_t kTriesOfEach = 6;  ///< of layouts that are wanted
constexpr std::size_t kFewestTries = 30;
constexpr std::size_t kLeanestTried = 5;

bool may_fit_whole(const Layout& layout) { return layout.composed->may_fit; }
bool is_any(const Layout&) { return true; }
bool is_composed_to_fit(const Layout& layout) { return layout.composed->outcome == Fit::kFits; }
bool is_seen_to_fit(const Layout& layout) {
  return layout.executed && layout.executed->outcome == Fit::kFits;
}

/// How many more layouts may be executed in vain.
struct TriesLeft {
  explicit TriesLeft(std::size_t wanted)
      : doubtful(std::max(kTriesOfEach * wanted, kFewestTries)), failing(doubtful) {}

  std::size_t doubtful;  ///< of those that may fit, but are not composed to
  std::size_t failing;   ///< of those that are composed to fit, and do not

  bool allow(const Layout& layout) const {
    return (is_composed_to_fit(layout) ? failing : doubtful) > 0;
  }
  void count(const Layout& layout) {
    if (!is_composed_to_fit(layout)) --doubtful;
  }
  void count_failing(const std::vector<Layout*>& executed) {
    for (const Layout* layout : executed) {
      const bool fails = is_composed_to_fit(*layout) && !is_seen_to_fit(*layout);
      if (fails && failing > 0) --failing;
    }
  }
};

/// What a layout must be faster than to be among the `count` that are wanted: for a token.
double seconds_to_beat(const std::vector<Layout*>& fastest, std::size_t count) {
  return fastest.size() < count ? std::numeric_limits<double>::infinity()
                                : fastest.back()->seconds_per_token();
}

/// Those that may fit and were not executed, the one that needs least memory first.
std::vector<Layout*> leanest_untried(Layouts& world) {
  std::vector<Layout*> layouts;
  for (Layout& layout : world.allowed) {
    if (layout.composed && !layout.executed && may_fit_whole(layout)) layouts.push_back(&layout);
  }
  std::stable_sort(layouts.begin(), layouts.end(), [](const Layout* a, const Layout* b) {
    return a->composed->peak_bytes < b->composed->peak_bytes;
  });
  layouts.resize(std::min(layouts.size(), kLeanestTried));
  return layouts;
}

}  // namespace

std::vector<Layout*> by_speed(std::vector<Layouts>& worlds, bool (*wanted)(const Layout&)) {
  std::vector<Layout*> layouts;
  for (Layouts& world : worlds) {
    for (Layout& layout : world.allowed) {
      if (layout.composed && wanted(layout)) layouts.push_back(&layout);
    }
  }
  std::stable_sort(layouts.begin(), layouts.end(), [](const Layout* a, const Layout* b) {
    return a->seconds_per_token() < b->seconds_per_token();
  });
  return layouts;
}

std::vector<Layout*> fastest_seen_to_fit(std::vector<Layouts>& worlds, std::size_t count) {
  std::vector<Layout*> layouts = by_speed(worlds, is_seen_to_fit);
  layouts.resize(std::min(layouts.size(), count));
  return layouts;
}

int64_t count_faster_untried(std::vector<Layouts>& worlds, std::size_t count) {
  const double to_beat = seconds_to_beat(fastest_seen_to_fit(worlds, count), count);
  const std::vector<Layout*> candidates = by_speed(worlds, may_fit_whole);
  return std::count_if(candidates.begin(), candidates.end(), [&](const Layout* layout) {
    return !layout->executed && layout->seconds_per_token() < to_beat;
  });
}

void execute_fastest(std::vector<Layouts>& worlds, std::size_t top, const ExecuteLayouts& execute) {
  const std::vector<Layout*> candidates = by_speed(worlds, may_fit_whole);
  TriesLeft tries(std::min(top, candidates.size()));
  for (auto next = candidates.begin();;) {
    const std::vector<Layout*> fastest = fastest_seen_to_fit(worlds, top);
    const double to_beat = seconds_to_beat(fastest, top);
    const std::size_t lacking = std::max<std::size_t>(top - fastest.size(), 1);
    std::vector<Layout*> batch;
    for (; next != candidates.end() && batch.size() < lacking; ++next) {
      if (!tries.allow(**next)) continue;
      if ((*next)->seconds_per_token() >= to_beat) break;
      tries.count(**next);
      batch.push_back(*next);
    }
    if (batch.empty()) return;
    execute(batch);
    tries.count_failing(batch);
  }
}

void LayoutExecution::execute(const std::vector<Layout*>& layouts) const {
  std::vector<Plan> plans;
  plans.reserve(layouts.size());
  for (const Layout* layout : layouts) plans.push_back(layout->plan);
  RankJob job = job_.rank_job(environment_);
  job.attribute_memory = false;
  const ManyPlans how{.job = std::move(job),
                      .calibration_of = [&](const Plan& plan) { return job_.calibration_of(plan); },
                      .progress = "executing the best layouts whole"};
  const std::vector<PlanAnswer> answers = estimate_plans(plans, how, environment_);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (answers[i].estimate) {
      layouts[i]->executed = estimator::executed_layout(*answers[i].estimate);
    }
  }
}

void LayoutExecution::execute_fastest(std::vector<Layouts>& worlds, std::size_t top) const {
  sim::execute_fastest(
      worlds, top, [this](const std::vector<Layout*>& layouts) { execute(layouts); });
}

void LayoutExecution::execute_leanest(std::vector<Layouts>& worlds) const {
  for (Layouts& world : worlds) {
    if (holds(world)) return;
    const std::vector<Layout*> leanest = leanest_untried(world);
    if (!leanest.empty()) execute(leanest);
    if (holds(world)) return;
  }
}

std::vector<const Layout*> LayoutExecution::execute_sample(std::vector<Layouts>& worlds,
                                                           std::size_t wanted) const {
  std::vector<Layout*> layouts = by_speed(worlds, is_any);
  std::mt19937 random(1);
  std::shuffle(layouts.begin(), layouts.end(), random);
  layouts.resize(std::min(layouts.size(), wanted));
  execute(layouts);
  std::vector<const Layout*> executed;
  for (const Layout* layout : layouts) {
    if (layout->executed) executed.push_back(layout);
  }
  return executed;
}

}  // namespace sim
