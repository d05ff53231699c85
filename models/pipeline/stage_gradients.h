// Which buffers a stage's parameters lie in, and how their gradients are reduced.
#pragma once

#include <memory>

#include "models/data_parallel/data_parallel.h"
#include "models/data_parallel/gradient_buffer.h"
#include "models/pipeline/stage.h"
#include "models/shard/shard_context.h"

namespace models {

/// Of plans that are not fully sharded: a buffer for each chunk, and one more for its experts
/// where other ranks have their replicas.
std::unique_ptr<DataParallel> make_data_parallel(const ShardContext& context, Stage& stage);

/// What becomes of autograd's own gradients.
OwnGradients own_gradients(const ShardContext& context);

}  // namespace models
