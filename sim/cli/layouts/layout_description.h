// Layouts as a search reports them.
#pragma once

#include <string>

#include "estimator/what_if/search_result.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/input/plan_options.h"

namespace sim {

/// Describes layouts with the command that estimates each of them.
class LayoutDescription {
 public:
  /// What the user gave, and the command line of the search. Both must outlive it.
  LayoutDescription(const PlanOptions& said, const CLI::App& app) : said_(said), app_(app) {}

  /// As it is composed, which it must be.
  estimator::FoundLayout found(const estimator::Layout& layout) const;
  /// With what its whole execution gave, where it was executed.
  estimator::FoundLayout executed(const estimator::Layout& layout) const;

 private:
  /// What was typed for the search, without what only a search has and what the layout says anew,
  /// and then the layout.
  std::string command_of(const estimator::Layout& layout, const std::string& flags) const;

  const PlanOptions& said_;
  const CLI::App& app_;
};

}  // namespace sim
