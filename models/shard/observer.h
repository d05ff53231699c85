// Who watches the shard, in the shard's own words.
#pragma once

#include "estimator/profile/run_observer.h"

namespace models {

using estimator::DirectionScope;
using estimator::kNoMicroBatch;
using estimator::LastingMemory;
using estimator::ModuleScope;
using estimator::Observer;

}  // namespace models
