#include "estimator/what_if/search_result.h"

#include <algorithm>
#include <tuple>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/cluster/training_estimate.h"
#include "estimator/compute/model_flops.h"
#include "estimator/plan/option_table.h"
#include "estimator/what_if/typed_flags.h"

namespace estimator {
namespace {

/// The edits that say something else than the defaults, which hold without them.
PlanEdits without_defaults(PlanEdits edits) {
  std::erase_if(edits, [](const PlanEdit& edit) {
    const PlanOption* option = find_plan_option(edit.path);
    return option != nullptr && option->default_value == edit.value.json().dump();
  });
  return edits;
}

}  // namespace

FoundLayout found_layout(const Layout& layout, std::optional<double> usd_per_gpu_hour) {
  const Plan& plan = layout.plan;
  const ComposedPlan& composed = layout.composed.value();
  const double seconds = composed.time.value().iteration_seconds;
  const auto world = static_cast<double>(plan.world_size());
  const double peak = world * gpu_of(plan.cluster).peak_flops(plan.training.dtype);
  FoundLayout found{.flags = flags_to_type(without_defaults(layout.edits)),
                    .gpus = plan.world_size(),
                    .outcome = composed.outcome,
                    .allocated_bytes = composed.allocated_bytes,
                    .peak_bytes = composed.peak_bytes,
                    .headroom_bytes = composed.headroom_bytes,
                    .capacity_bytes = gpu_of(plan.cluster).memory_bytes,
                    .kept_free_bytes = plan.memory.headroom_bytes,
                    .iteration_seconds = seconds,
                    .tokens_per_second = static_cast<double>(plan.tokens_per_step()) / seconds,
                    .mfu = step_flops(plan).model / seconds / peak};
  if (usd_per_gpu_hour) {
    constexpr double kMillion = 1e6;
    found.usd_per_million_tokens =
        *usd_per_gpu_hour * world / kHour / found.tokens_per_second * kMillion;
  }
  return found;
}

void add_executed(const Layout& layout, FoundLayout& found) {
  if (!layout.executed) return;
  const ExecutedLayout& executed = *layout.executed;
  found.executed_allocated_bytes = executed.allocated_bytes;
  found.executed_peak_bytes = executed.peak_bytes;
  found.executed_outcome = executed.outcome;
  found.executed_iteration_seconds = executed.iteration_seconds;
  found.tokens_per_second = executed.tokens_per_second;
  found.mfu = executed.mfu;
}

namespace {

std::vector<RefusalCount> most_frequent_first(const Refusals& refused) {
  std::vector<RefusalCount> counts;
  counts.reserve(refused.counts.size());
  for (const auto& [what, count] : refused.counts) counts.push_back({what, count});
  std::stable_sort(counts.begin(), counts.end(), [](const RefusalCount& a, const RefusalCount& b) {
    return a.layouts > b.layouts;
  });
  return counts;
}

}  // namespace

WorldSearch world_search(int64_t gpus, const Layouts& layouts) {
  const int64_t refused = layouts.refused.sum();
  WorldSearch world{.gpus = gpus,
                    .layouts = std::ssize(layouts.allowed) + refused,
                    .refused = refused,
                    .refusals = most_frequent_first(layouts.refused)};
  for (const Layout& layout : layouts.allowed) {
    if (!layout.composed) continue;
    world.fits += layout.outcome() == Fit::kFits;
    world.too_close += layout.outcome() == Fit::kTooClose;
  }
  return world;
}

const Layout* leanest_of(const Layouts& layouts) {
  const Layout* leanest = nullptr;
  for (const Layout& layout : layouts.allowed) {
    if (!layout.composed) continue;
    if (leanest == nullptr || layout.peak_bytes() < leanest->peak_bytes()) leanest = &layout;
  }
  return leanest;
}

bool holds(const Layouts& layouts) {
  return std::any_of(layouts.allowed.begin(), layouts.allowed.end(), [](const Layout& layout) {
    return layout.executed && layout.executed->outcome == Fit::kFits;
  });
}

std::vector<FoundLayout> pareto_front(std::vector<FoundLayout> layouts) {
  const auto is_no_worse = [](const FoundLayout& a, const FoundLayout& b) {
    return a.tokens_per_second >= b.tokens_per_second && a.headroom_bytes >= b.headroom_bytes &&
           a.gpus <= b.gpus &&
           a.usd_per_million_tokens.value_or(0) <= b.usd_per_million_tokens.value_or(0);
  };
  std::stable_sort(layouts.begin(), layouts.end(), [](const auto& a, const auto& b) {
    return std::tuple(-a.tokens_per_second, a.gpus, -a.headroom_bytes) <
           std::tuple(-b.tokens_per_second, b.gpus, -b.headroom_bytes);
  });
  // In this order a layout can only be worse than one before it.
  std::vector<FoundLayout> front;
  for (FoundLayout& layout : layouts) {
    const bool is_worse = std::any_of(front.begin(), front.end(), [&](const FoundLayout& better) {
      return is_no_worse(better, layout);
    });
    if (!is_worse) front.push_back(std::move(layout));
  }
  return front;
}

}  // namespace estimator
