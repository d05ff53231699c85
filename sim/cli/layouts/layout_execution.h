// Executes composed layouts whole. What it learns is kept in the layouts, and counts in their
// place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "estimator/what_if/search.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// The composed layouts that meet `wanted`, those first that train the most tokens in a second.
std::vector<estimator::Layout*> by_speed(std::vector<estimator::Layouts>& worlds,
                                         bool (*wanted)(const estimator::Layout&));

/// The `count` fastest of the layouts that were executed whole and fit, or all of them.
std::vector<estimator::Layout*> fastest_seen_to_fit(std::vector<estimator::Layouts>& worlds,
                                                    std::size_t count);

/// How many layouts may fit and may be faster than the last of fastest_seen_to_fit(), or than
/// nothing where it has fewer than `count`, but were not executed.
int64_t count_faster_untried(std::vector<estimator::Layouts>& worlds, std::size_t count);

/// Executes layouts whole, and keeps in them what it learns.
using ExecuteLayouts = std::function<void(const std::vector<estimator::Layout*>& layouts)>;

/// Executes the fastest of those that may fit, at a time as many as are lacking, until `top` of
/// them fit and no other is faster than these. What the allocator loses is not exact in a composed
/// layout, so all whose allocated bytes fit may; of those that may but are not composed to fit,
/// only so many are tried, and the others are left out.
void execute_fastest(std::vector<estimator::Layouts>& worlds,
                     std::size_t top,
                     const ExecuteLayouts& execute);

class LayoutExecution {
 public:
  /// Both must outlive it.
  LayoutExecution(const ClusterJob& job, const Environment& environment)
      : job_(job), environment_(environment) {}

  /// As the function of this name, with execute().
  void execute_fastest(std::vector<estimator::Layouts>& worlds, std::size_t top) const;

  /// Of each world in turn, until one of its layouts fits: those that need least memory.
  void execute_leanest(std::vector<estimator::Layouts>& worlds) const;

  /// So many at random, the same each time. Returns those that could be run.
  std::vector<const estimator::Layout*> execute_sample(std::vector<estimator::Layouts>& worlds,
                                                       std::size_t wanted) const;

 private:
  void execute(const std::vector<estimator::Layout*>& layouts) const;

  const ClusterJob& job_;
  const Environment& environment_;
};

}  // namespace sim
