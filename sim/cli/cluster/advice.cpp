#include "sim/cli/cluster/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "estimator/base/units.h"
#include "estimator/plan/plan_changes.h"

namespace sim {
namespace {

using estimator::Advice;
using estimator::ClusterEstimate;
using estimator::format_gib;
using estimator::Plan;
using estimator::PlanChange;

constexpr int kMostChangesAtOnce = 3;

struct TriedChange {
  PlanChange change;
  FitAnswer answer;
};

std::vector<TriedChange> try_changes(const Plan& plan,
                                     int64_t likely_stage,
                                     const PlanRunner& runner) {
  std::vector<TriedChange> tried;
  for (PlanChange& change : estimator::memory_saving_changes(plan)) {
    FitAnswer answer = probe_fit(change.plan, likely_stage, runner);
    tried.push_back({std::move(change), std::move(answer)});
  }
  return tried;
}

Advice advice_of(const TriedChange& tried, const std::string& made, const ClusterEstimate& before) {
  Advice advice;
  const FitAnswer& answer = tried.answer;
  const int64_t free = before.verdict.capacity_bytes - answer.peak_bytes;
  advice.text = made + tried.change.text;
  switch (answer.fit) {
    case estimator::Fit::kFits:
      advice.text += fmt::format(": fits, and leaves {}", format_gib(free));
      break;
    case estimator::Fit::kTooClose:
      advice.text += ": too close to call";
      break;
    case estimator::Fit::kDoesNotFit:
      advice.text += fmt::format(": still {} too much", format_gib(std::max<int64_t>(-free, 0)));
      break;
  }
  advice.gain_bytes = before.verdict.peak_bytes - answer.peak_bytes;
  if (answer.estimate) {
    advice.gain_seconds = before.time.iteration_seconds - answer.estimate->time.iteration_seconds;
  }
  return advice;
}

std::vector<Advice> list(std::vector<TriedChange> tried,
                         bool fitting,
                         const std::string& made,
                         const ClusterEstimate& before) {
  std::erase_if(tried, [&](const TriedChange& t) { return t.answer.fits() != fitting; });
  const auto order = [&](const TriedChange& t) {
    return fitting ? t.answer.estimate->time.iteration_seconds
                   : static_cast<double>(t.answer.peak_bytes);
  };
  std::stable_sort(tried.begin(), tried.end(), [&](const TriedChange& a, const TriedChange& b) {
    return order(a) < order(b);
  });
  std::vector<Advice> advice;
  for (const TriedChange& t : tried) advice.push_back(advice_of(t, made, before));
  return advice;
}

}  // namespace

std::vector<Advice> advise(const Plan& plan,
                           const ClusterEstimate& estimate,
                           const PlanRunner& runner) {
  if (estimate.verdict.fits()) return {};
  const int64_t likely_stage = worst_stage(estimate);
  Plan base = plan;
  std::string made;
  std::vector<Advice> single;
  for (int changes = 1; changes <= kMostChangesAtOnce; ++changes) {
    const std::vector<TriedChange> tried = try_changes(base, likely_stage, runner);
    if (tried.empty()) break;
    std::vector<Advice> fitting = list(tried, /*fitting=*/true, made, estimate);
    if (!fitting.empty()) return fitting;
    if (changes == 1) single = list(tried, /*fitting=*/false, made, estimate);
    const auto most_saving = std::min_element(
        tried.begin(), tried.end(), [](const TriedChange& a, const TriedChange& b) {
          return a.answer.peak_bytes < b.answer.peak_bytes;
        });
    base = most_saving->change.plan;
    made += most_saving->change.text + " and ";
  }
  return single;
}

}  // namespace sim
