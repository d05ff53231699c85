// Families of layouts in a search: those that are composed from the same pieces
// (estimator/compose/pieces.h), and what they need memory for.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/what_if/layout_bounds.h"
#include "estimator/what_if/search_result.h"

namespace sim {

struct LayoutFamily {
  std::vector<estimator::Layout*> layouts;
  std::vector<estimator::PieceRun> runs;
  std::optional<estimator::LayerCost> cost;  ///< of a layer, where it is asked for
};
using LayoutFamilies = std::map<std::string, LayoutFamily>;

/// Of all worlds, which must outlive them, by the pieces that they need. Layouts whose state alone
/// is larger than a GPU are left out, and counted in `search`.
LayoutFamilies families_of(std::vector<estimator::Layouts>& worlds, estimator::Search& search);

/// What a layout needs memory for, each the more the larger: micro-batch, what is not recomputed,
/// and what ZeRO does not divide.
using MemoryDemand = std::array<int64_t, 3>;
MemoryDemand demand_of(const estimator::Layout& layout);

/// What families of one order of demands have in common.
std::string key_beside_demand(const estimator::Layout& layout);

/// Equal for layouts whose layers differ in nothing else than their demands: they may have other
/// pipelines and data ranks.
std::string kind_of_layers(const estimator::Layout& layout);

/// The demands that no layout meets, by the rest.
class HopelessDemands {
 public:
  void add(const estimator::Layout& layout);
  bool has(const estimator::Layout& layout) const;

 private:
  std::map<std::string, std::vector<MemoryDemand>> demands_;
};

/// Whether a layout fits that was composed; those that were not may.
bool may_fit(const std::vector<estimator::Layout*>& layouts);

}  // namespace sim
