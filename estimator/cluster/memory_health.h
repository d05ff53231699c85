// How full the GPU is at the peak, against thresholds.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/cluster/cluster_estimate.h"

namespace estimator {

enum class HealthLevel { kHealthy, kAboveTarget, kWarning, kCritical, kEmergency };
constexpr std::array<EnumName<HealthLevel>, 5> enum_names(HealthLevel) {
  return {{{HealthLevel::kHealthy, "healthy"},
           {HealthLevel::kAboveTarget, "above_target"},
           {HealthLevel::kWarning, "warning"},
           {HealthLevel::kCritical, "critical"},
           {HealthLevel::kEmergency, "emergency"}}};
}

/// Shares of the GPU's memory, ascending.
struct HealthThresholds {
  const char* name;
  double target;
  double warning;
  double critical;
  double emergency;
  Source source;
  const char* note;
};

/// "balanced", "aggressive" and "conservative".
const std::vector<HealthThresholds>& health_thresholds();

/// Null when no thresholds have this name.
const HealthThresholds* find_health_thresholds(std::string_view name);

struct MemoryHealth {
  std::string thresholds;
  HealthLevel level = HealthLevel::kHealthy;
  double used_share = 0;
  double target_share = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MemoryHealth& health) {
  visit("thresholds", health.thresholds, "their name");
  visit("level", health.level, "how full the GPU of the worst rank is at its peak");
  visit("used_share", health.used_share, "of the GPU's memory, at the peak");
  visit("target_share", health.target_share, "what the thresholds aim at");
}

/// Of the worst rank. A level begins above its threshold.
MemoryHealth memory_health(const Verdict& verdict, const HealthThresholds& thresholds);

}  // namespace estimator
