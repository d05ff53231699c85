#include "sim/cli/commands/layout_execution.h"

#include <algorithm>
#include <random>

#include "estimator/what_if/search_result.h"
#include "sim/cli/commands/many_plans.h"

namespace sim {
namespace {

using estimator::Fit;
using estimator::Layout;
using estimator::Layouts;
using estimator::Plan;

constexpr std::size_t kMostTries = 6;
constexpr std::size_t kLeanestTried = 5;

bool may_fit_whole(const Layout& layout) { return layout.composed->may_fit; }
bool is_any(const Layout&) { return true; }

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

void LayoutExecution::execute(const std::vector<Layout*>& layouts) const {
  std::vector<Plan> plans;
  plans.reserve(layouts.size());
  for (const Layout* layout : layouts) plans.push_back(layout->plan);
  const ManyPlans how{.job = job_.rank_job(environment_),
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
  const std::vector<Layout*> candidates = by_speed(worlds, may_fit_whole);
  auto next = candidates.begin();
  std::size_t fitting = 0;
  for (std::size_t tries = 0; tries < kMostTries && fitting < top; ++tries) {
    std::vector<Layout*> batch;
    for (; next != candidates.end() && batch.size() < top; ++next) batch.push_back(*next);
    if (batch.empty()) return;
    execute(batch);
    fitting += static_cast<std::size_t>(
        std::count_if(batch.begin(), batch.end(), [](const Layout* layout) {
          return layout->executed && layout->executed->outcome == Fit::kFits;
        }));
  }
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
