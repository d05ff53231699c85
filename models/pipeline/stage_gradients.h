// Chooses the buffers for a stage's parameters, and how their gradients are reduced.
#pragma once

#include <memory>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/data_parallel/gradient_buffer.h"
#include "models/pipeline/stage.h"
#include "models/shard/shard_context.h"

namespace models {

/// For plans that are not fully sharded: one buffer for each chunk, and one more for the chunk's
/// experts if their replicas are on other ranks than those of the rest.
std::unique_ptr<DataParallel> make_data_parallel(const ShardContext& context, Stage& stage);

/// The optimizer's groups of parameters: all, or those that decay and those that do not.
std::vector<ParameterList> optimizer_groups(const ShardContext& context, Stage& stage);

/// How long the separate gradients that autograd makes are kept.
OwnGradients own_gradients(const ShardContext& context);

}  // namespace models
