#include "sim/cli/layouts/fastest_layouts.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/cli/layouts/layout_composer.h"

namespace sim {
namespace {

using estimator::Fit;
using estimator::LayerCosts;
using estimator::Layout;
using estimator::Plan;
using estimator::Search;

/// Bounds are taken so much lower: a stage of two layers takes a little longer for each of them
/// than a long one does (assumed).
constexpr double kBoundMargin = 0.95;
/// Families are executed together until there are so many pieces, which keep the processors busy.
constexpr std::size_t kPiecesAtOnce = 32;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// Of layers of one kind: the fastest for each sample.
bool is_faster_for_a_sample(const Plan& a, const Plan& b) {
  const auto rank = [](const Plan& plan) {
    return std::tuple(-plan.training.micro_batch_size, plan.training.recompute);
  };
  return rank(a) < rank(b);
}

std::size_t pieces_of(const LayoutFamily& family) {
  return static_cast<std::size_t>(estimator::number_of_pieces(family.layouts.front()->plan));
}

/// How many more pieces may have to be executed.
int64_t pieces_of(const std::vector<LayoutFamily*>& families) {
  std::size_t pieces = 0;
  for (const LayoutFamily* family : families) pieces += pieces_of(*family);
  return static_cast<int64_t>(pieces);
}

}  // namespace

FastestLayouts::FastestLayouts(LayoutFamilies& families, std::size_t best, Search& search)
    : families_(families), best_(std::max<std::size_t>(best, 1)), search_(search) {}

void FastestLayouts::compose(LayoutComposer& composer) {
  measure_layers(composer);
  if (search_.interrupted) return;
  leave_out_too_large();
  Progress progress(
      "executing pieces of the fastest", 0, standard_error_display(), Progress::Clock::now());
  while (!search_.interrupted) {
    find_least_seconds();
    find_cutoffs();
    keep_wanted();
    if (left_.empty()) return;
    progress.expect_more(pieces_of(left_));
    compose_next(composer, progress);
  }
}

void FastestLayouts::measure_layers(LayoutComposer& composer) {
  std::map<std::string, const Plan*> fastest;
  for (const auto& [key, family] : families_) {
    const Plan& plan = family.layouts.front()->plan;
    const Plan*& best = fastest[kind_of_layers(*family.layouts.front())];
    if (best == nullptr || is_faster_for_a_sample(plan, *best)) best = &plan;
  }
  std::vector<const Plan*> plans;
  plans.reserve(fastest.size());
  for (const auto& [kind, plan] : fastest) plans.push_back(plan);
  const std::vector<estimator::LayerCost> costs = composer.layer_costs(plans, search_);
  auto cost = costs.begin();
  for (const auto& [kind, plan] : fastest) {
    costs_[kind][plan->training.micro_batch_size] = *cost++;
  }
}

void FastestLayouts::leave_out_too_large() {
  for (auto& [key, family] : families_) {
    const LayerCosts& costs = costs_of(family);
    std::erase_if(family.layouts, [&](const Layout* layout) {
      const auto bytes =
          static_cast<double>(least_peak_bytes(layout->plan, cost_for(layout->plan, costs)));
      return kBoundMargin * bytes >
                 static_cast<double>(gpu_of(layout->plan.cluster).memory_bytes) &&
             ++search_.layouts_too_full > 0;
    });
    if (!family.layouts.empty()) left_.push_back(&family);
  }
}

const LayerCosts& FastestLayouts::costs_of(const LayoutFamily& family) const {
  return costs_.at(kind_of_layers(*family.layouts.front()));
}

void FastestLayouts::find_least_seconds() {
  for (const LayoutFamily* family : left_) {
    const LayerCosts& costs = costs_of(*family);
    for (const Layout* layout : family->layouts) {
      const double seconds = kBoundMargin *
                             least_step_seconds(layout->plan, cost_for(layout->plan, costs)) /
                             static_cast<double>(layout->plan.tokens_per_step());
      least_seconds_[layout] = seconds;
      double& of_world =
          least_of_world_.try_emplace(layout->plan.world_size(), kNever).first->second;
      of_world = std::min(of_world, seconds);
    }
  }
}

/// The fewer samples a layer has at once, the more it takes for each of them, so that what was
/// executed is a better bound for smaller micro-batches than the first one.
void FastestLayouts::take_costs(const LayoutFamily& family) {
  if (!family.cost) return;
  const Layout& layout = *family.layouts.front();
  costs_[kind_of_layers(layout)].try_emplace(layout.plan.training.micro_batch_size, *family.cost);
}

void FastestLayouts::find_cutoffs() {
  std::map<int64_t, std::vector<double>> fitting;
  for (const auto& [key, family] : families_) {
    for (const Layout* layout : family.layouts) {
      if (!layout->composed || layout->composed->outcome != Fit::kFits) continue;
      fitting[layout->plan.world_size()].push_back(layout->seconds_per_token());
    }
  }
  for (auto& [world, seconds] : fitting) {
    if (seconds.size() < best_) continue;
    const auto last = seconds.begin() + static_cast<std::ptrdiff_t>(best_) - 1;
    std::nth_element(seconds.begin(), last, seconds.end());
    cutoffs_[world] = *last;
  }
}

bool FastestLayouts::is_wanted(const Layout& layout) const {
  const auto cutoff = cutoffs_.find(layout.plan.world_size());
  return cutoff == cutoffs_.end() || least_seconds_.at(&layout) <= cutoff->second;
}

std::vector<LayoutFamily*> FastestLayouts::wanted() const {
  std::vector<std::pair<double, LayoutFamily*>> ordered;
  for (LayoutFamily* family : left_) {
    double nearest = kNever;
    for (const Layout* layout : family->layouts) {
      if (!is_wanted(*layout)) continue;
      nearest = std::min(nearest,
                         least_seconds_.at(layout) / least_of_world_.at(layout->plan.world_size()));
    }
    if (nearest < kNever) ordered.emplace_back(nearest, family);
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  std::vector<LayoutFamily*> families;
  families.reserve(ordered.size());
  for (const auto& [nearest, family] : ordered) families.push_back(family);
  return families;
}

void FastestLayouts::compose_next(LayoutComposer& composer, Progress& progress) {
  std::vector<LayoutFamily*> batch;
  std::size_t pieces = 0;
  for (LayoutFamily* family : left_) {
    if (pieces >= kPiecesAtOnce) break;
    batch.push_back(family);
    pieces += pieces_of(*family);
  }
  composer.compose_families(batch, progress, search_);
  left_.erase(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  for (const LayoutFamily* family : batch) {
    take_costs(*family);
    if (!may_fit(family->layouts)) hopeless_.add(*family->layouts.front());
  }
}

void FastestLayouts::keep_wanted() {
  std::erase_if(left_, [&](const LayoutFamily* family) {
    if (!hopeless_.has(*family->layouts.front())) return false;
    search_.layouts_hopeless += std::ssize(family->layouts);
    return true;
  });
  int64_t before = 0;
  int64_t after = 0;
  for (const LayoutFamily* family : left_) before += std::ssize(family->layouts);
  left_ = wanted();
  for (const LayoutFamily* family : left_) after += std::ssize(family->layouts);
  search_.layouts_slower += before - after;
}

}  // namespace sim
