#include "estimator/step/graph_launches.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "estimator/plan/cuda_graphs.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {
namespace {

/// Numbers the graphs of layers in the order in which they run.
class LayerNumbers {
 public:
  LayerNumbers(const TrainingConfig& training, const StepOrder& order)
      : order_(order),
        of_experts_(graph_span(training, /*has_experts=*/true)),
        of_mlp_(graph_span(training, /*has_experts=*/false)) {
    for (const std::string& module : order.modules) {
      const auto place = place_in_layer(module);
      if (place && place->part == GraphModule::kMoeRouter) layers_of_experts_.insert(place->layer);
    }
  }

  int64_t next(std::size_t event) {
    const auto direction = static_cast<Direction>(order_.events.direction[event]);
    const auto module = static_cast<std::size_t>(order_.events.module[event]);
    const auto place = place_in_layer(order_.modules[module]);
    const bool is_forward = direction == Direction::kForward;
    const bool goes_on = place && place->layer == layer_ && is_forward == is_forward_;
    const bool was_in = goes_on && is_in_;
    is_in_ = place && is_per_micro_batch(direction) && is_captured(*place, was_in);
    if (is_in_ && !was_in) ++graph_;
    layer_ = place ? place->layer : std::string_view();
    is_forward_ = is_forward;
    return is_in_ ? graph_ : GraphLaunches::kNone;
  }

 private:
  bool is_captured(const PlaceInLayer& place, bool was_in) const {
    if (!place.part) return was_in;
    const auto& span = layers_of_experts_.contains(place.layer) ? of_experts_ : of_mlp_;
    return span && span->holds(*place.part);
  }

  const StepOrder& order_;
  const std::optional<GraphSpan> of_experts_, of_mlp_;
  std::set<std::string_view> layers_of_experts_;
  std::string_view layer_;
  bool is_forward_ = true, is_in_ = false;
  int64_t graph_ = GraphLaunches::kNone;
};

/// All that is between the first forward of a step and its last backward is one graph.
std::vector<int64_t> one_graph(const OrderEvents& events) {
  std::vector<int64_t> graphs;
  for (const int64_t direction : events.direction) {
    const bool is_in = static_cast<Direction>(direction) != Direction::kOptimizerStep;
    graphs.push_back(is_in ? 0 : GraphLaunches::kNone);
  }
  return graphs;
}

}  // namespace

GraphLaunches graph_launches(const Plan& plan, const StepOrder& order, const LaunchCost& launch) {
  GraphLaunches launches{
      .graph_of_event = {},
      .launch_seconds = launch.graph_launch_seconds,
      .saved_seconds = std::max(0.0, launch.kernel_seconds - launch.graph_kernel_seconds)};
  if (captures_iteration(plan.training)) {
    launches.graph_of_event = one_graph(order.events);
  } else if (captures_layers(plan.training)) {
    LayerNumbers numbers(plan.training, order);
    for (std::size_t event = 0; event < order.events.kind.size(); ++event) {
      launches.graph_of_event.push_back(numbers.next(event));
    }
  }
  return launches;
}

}  // namespace estimator
