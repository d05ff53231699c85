#include "estimator/cluster/memory_health.h"

#include <algorithm>

namespace estimator {

const std::vector<HealthThresholds>& health_thresholds() {
  static const std::vector<HealthThresholds> thresholds = {
      {"balanced",
       0.90,
       0.92,
       0.95,
       0.97,
       Source::kPublished,
       "the memory guide of the Ava training project: target, warning, critical, emergency"},
      {"aggressive", 0.94, 0.95, 0.97, 0.98, Source::kAssumed, "for runs that may be restarted"},
      {"conservative",
       0.80,
       0.85,
       0.90,
       0.95,
       Source::kAssumed,
       "for long runs, whose memory may fragment or grow"}};
  return thresholds;
}

const HealthThresholds* find_health_thresholds(std::string_view name) {
  const auto& all = health_thresholds();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

MemoryHealth memory_health(const Verdict& verdict, const HealthThresholds& thresholds) {
  const double share =
      static_cast<double>(verdict.peak_bytes) / static_cast<double>(verdict.capacity_bytes);
  HealthLevel level = HealthLevel::kHealthy;
  if (share > thresholds.target) level = HealthLevel::kAboveTarget;
  if (share > thresholds.warning) level = HealthLevel::kWarning;
  if (share > thresholds.critical) level = HealthLevel::kCritical;
  if (share > thresholds.emergency) level = HealthLevel::kEmergency;
  return {.thresholds = thresholds.name,
          .level = level,
          .used_share = share,
          .target_share = thresholds.target};
}

}  // namespace estimator
