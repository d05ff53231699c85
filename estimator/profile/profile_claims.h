// What a rank profile says about itself must agree: it may come from anywhere.
#pragma once

#include "estimator/base/fields.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Reports what no run can have left: more allocated than reserved, a peak that is in no phase,
/// categories that do not add up, a rank outside of its world, a shard that computed nothing.
void report_contradictions(const RankProfile& profile, FieldReader& reader);

/// The same of a peak alone, whose path in the document is `path`.
void report_contradictions(const PeakRecord& peak, const std::string& path, FieldReader& reader);

}  // namespace estimator
