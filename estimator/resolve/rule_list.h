// Collects the rules that a plan breaks.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/range.h"
#include "estimator/base/units.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/remedies.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

/// Collects broken rules. Each rule is one call: a condition that must hold, and the message if it
/// does not.
class Rules {
 public:
  /// `plan` must outlive it.
  Rules(const Plan& plan, PlanContext context) : plan_(plan), context_(std::move(context)) {}

  const Plan& plan() const { return plan_; }
  const PlanContext& context() const { return context_; }
  const std::vector<BrokenRule>& broken() const { return broken_; }

  void require(bool holds,
               std::string what,
               const std::string& where,
               std::string help,
               std::vector<Remedy> remedies = {}) {
    if (holds) return;
    broken_.push_back(
        {{std::move(what), context_.origin + ": " + where, std::move(help)}, std::move(remedies)});
  }

  void in_range(int64_t least, int64_t most, int64_t value, const std::string& key) {
    require(value >= least && value <= most,
            kOutOfRange,
            fmt::format("{} = {}", key, value),
            range_text({static_cast<double>(least), static_cast<double>(most)}));
  }

  /// A rule that says itself where it is broken.
  void add(Problem problem) { broken_.push_back({std::move(problem), {}}); }

 private:
  const Plan& plan_;
  PlanContext context_;
  std::vector<BrokenRule> broken_;
};

}  // namespace estimator
