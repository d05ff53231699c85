// A search that executes what may be among the fastest, and leaves out what is surely slower.
//
// A layer of each kind is executed first. From it follows a time below which a layout cannot be,
// and memory that it needs at least. The families are executed in the order of these times, until
// those that are left cannot be among the best.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "estimator/what_if/layout_bounds.h"
#include "sim/cli/layouts/layout_families.h"
#include "sim/cli/process/progress.h"

namespace sim {

class LayoutComposer;

class FastestLayouts {
 public:
  /// `families` and `search` must outlive it. Of each number of GPUs the `best` fastest are wanted.
  FastestLayouts(LayoutFamilies& families, std::size_t best, estimator::Search& search);

  /// Composes them. What was not composed is counted in the search.
  void compose(LayoutComposer& composer);

 private:
  void measure_layers(LayoutComposer& composer);
  void leave_out_too_large();
  const estimator::LayerCosts& costs_of(const LayoutFamily& family) const;
  void take_costs(const LayoutFamily& family);
  void find_least_seconds();
  void find_cutoffs();
  bool is_wanted(const estimator::Layout& layout) const;
  /// Of what is left, what may be among the best, the most promising first.
  std::vector<LayoutFamily*> wanted() const;
  void keep_wanted();
  void compose_next(LayoutComposer& composer, Progress& progress);

  LayoutFamilies& families_;
  std::size_t best_;
  estimator::Search& search_;
  std::map<std::string, estimator::LayerCosts> costs_;        ///< by kind_of_layers()
  std::map<const estimator::Layout*, double> least_seconds_;  ///< for each token
  std::map<int64_t, double> least_of_world_;
  std::map<int64_t, double> cutoffs_;  ///< of a token, above which none of the world is wanted
  std::vector<LayoutFamily*> left_;    ///< that are not composed yet
  HopelessDemands hopeless_;
};

}  // namespace sim
