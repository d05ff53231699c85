// Checks that a rank profile does not contradict itself, because it may come from anywhere.
#pragma once

#include "estimator/profile/rank_profile.h"

namespace estimator {

class FieldReader;

/// Reports statements that no run can have produced: more bytes allocated than reserved, a peak
/// that is in no phase, categories that do not add up, a rank outside its world, a shard that
/// computed nothing.
void report_contradictions(const RankProfile& profile, FieldReader& reader);

/// The same checks for a peak alone, which stands at `path` in the document.
void report_contradictions(const PeakRecord& peak, const std::string& path, FieldReader& reader);

}  // namespace estimator
