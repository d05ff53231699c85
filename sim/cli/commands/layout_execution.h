// Executes composed layouts whole. What it learns is kept in the layouts, and counts in their
// place.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/what_if/search.h"
#include "sim/cli/commands/cluster_job.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// The composed layouts that meet `wanted`, those first that train the most tokens in a second.
std::vector<estimator::Layout*> by_speed(std::vector<estimator::Layouts>& worlds,
                                         bool (*wanted)(const estimator::Layout&));

class LayoutExecution {
 public:
  /// Both must outlive it.
  LayoutExecution(const ClusterJob& job, const Environment& environment)
      : job_(job), environment_(environment) {}

  /// The fastest of those that may fit, a few at a time, until `top` of them fit. What the
  /// allocator loses is not exact in a composed layout, so all whose allocated bytes fit may.
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
