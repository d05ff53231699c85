// The works of a micro-batch as they are shown, with what they allocate.
#pragma once

#include <vector>

#include "estimator/profile/rank_profile.h"
#include "estimator/replay/work_price.h"
#include "estimator/step/stage_time.h"

namespace estimator {

/// Whether it moves tokens to experts or back, by DeepEP or HybridEP.
bool is_dispatch(const OperatorRecord& kernel);

/// Of an operator.
WorkClass class_of(const OperatorRecord& kernel);

/// A work of the profile's order.
ShownWork shown_work(const RankProfile& profile,
                     const StepOrder& order,
                     const MicroBatchWork& work);

/// What the forward or backward adds to the memory that is allocated as it begins. `works` are
/// those of its micro-batch.
PartMemoryChange memory_change(const OrderEvents& events,
                               const PartMemory& part,
                               const std::vector<MicroBatchWork>& works);

}  // namespace estimator
