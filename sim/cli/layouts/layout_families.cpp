#include "sim/cli/layouts/layout_families.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "estimator/base/fields.h"
#include "estimator/what_if/least_bytes.h"
#include "estimator/what_if/option_paths.h"

namespace sim {
namespace {

namespace paths = estimator::paths;
using estimator::Layout;
using estimator::Layouts;
using estimator::Plan;
using estimator::Search;

constexpr const char* kDemandPaths[] = {paths::kMicroBatch, paths::kRecompute, paths::kZeroStage};
/// Of the data ranks' exchange, which changes neither a layer's time nor what it holds.
constexpr const char* kOverlapPaths[] = {paths::kOverlapReduce, paths::kOverlapGather};
constexpr const char* kPipelinePaths[] = {
    paths::kPipeline, paths::kVirtual, paths::kLayersPerStage, paths::kData};

template <std::size_t kCount>
void erase_edits(const char* const (&edited)[kCount], Layout& layout) {
  std::erase_if(layout.edits, [&](const estimator::PlanEdit& edit) {
    return std::find(std::begin(edited), std::end(edited), edit.path) != std::end(edited);
  });
}

bool needs_no_less(const MemoryDemand& demand, const MemoryDemand& other) {
  return std::equal(demand.begin(), demand.end(), other.begin(), std::greater_equal<>());
}

}  // namespace

LayoutFamilies families_of(std::vector<Layouts>& worlds, Search& search) {
  LayoutFamilies families;
  for (Layouts& world : worlds) {
    for (Layout& layout : world.allowed) {
      if (estimator::state_alone_is_too_large(layout.plan)) {
        ++search.layouts_too_large;
      } else {
        families[estimator::quick_pieces_key(layout)].layouts.push_back(&layout);
      }
    }
  }
  return families;
}

MemoryDemand demand_of(const Layout& layout) {
  const Plan& plan = layout.plan;
  // Stages 0 and 1 are one kind of data parallelism, and 2 and 3 another.
  const int64_t most_divided = plan.parallelism.divides_gradients() ? 3 : 1;
  return {plan.training.micro_batch_size,
          -static_cast<int64_t>(plan.training.recompute),
          most_divided - plan.parallelism.zero_stage};
}

std::string key_beside_demand(const Layout& layout) {
  Layout other = layout;
  erase_edits(kDemandPaths, other);
  // Of pipelines it tells which have virtual stages, and so more forwards in flight.
  if (layout.plan.parallelism.pipeline == 1) erase_edits(kOverlapPaths, other);
  return estimator::quick_pieces_key(other) +
         (layout.plan.parallelism.divides_gradients() ? ", sharded" : "");
}

std::string kind_of_layers(const Layout& layout) {
  Layout other = layout;
  erase_edits(kDemandPaths, other);
  erase_edits(kOverlapPaths, other);
  erase_edits(kPipelinePaths, other);
  std::string kind = layout.plan.parallelism.divides_gradients() ? "sharded" : "";
  for (const estimator::PlanEdit& edit : other.edits) {
    kind += edit.path + " " + edit.value.json().dump() + ", ";
  }
  return kind;
}

void HopelessDemands::add(const Layout& layout) {
  demands_[key_beside_demand(layout)].push_back(demand_of(layout));
}

bool HopelessDemands::has(const Layout& layout) const {
  const auto found = demands_.find(key_beside_demand(layout));
  if (found == demands_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const MemoryDemand& one) {
    return needs_no_less(demand_of(layout), one);
  });
}

bool may_fit(const std::vector<Layout*>& layouts) {
  return std::any_of(layouts.begin(), layouts.end(), [](const Layout* layout) {
    return !layout->composed || layout->composed->may_fit;
  });
}

}  // namespace sim
