// Names of the shard's observer in the shard's own namespace.
#pragma once

#include "estimator/profile/run_observer.h"

namespace models {

using estimator::DirectionScope;
using estimator::kNoChunk;
using estimator::kNoMicroBatch;
using estimator::LastingMemory;
using estimator::ModuleScope;
using estimator::Observer;
using estimator::PieceScope;

}  // namespace models
