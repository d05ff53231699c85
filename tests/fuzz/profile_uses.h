// What the profiles of a plan's ranks are good for.
#pragma once

#include <string>
#include <vector>

#include "estimator/compute/calibration.h"
#include "estimator/profile/rank_profile.h"

namespace fuzz {

/// Estimates the cluster, its timeline, trace and roofline, and writes them as JSON and text. Fails
/// for a number that cannot be.
void use_profiles(const std::vector<estimator::RankProfile>& profiles,
                  const estimator::Calibration* calibration = nullptr);

/// Reads the profile, and fails if it does not read back as itself.
estimator::RankProfile read_profile(const std::string& text);

/// The profiles of an input: one, or a list of them.
std::vector<estimator::RankProfile> read_profiles(const std::string& text);

}  // namespace fuzz
