// What TransformerEngine's user buffers take of the GPU, outside PyTorch's allocator.
#pragma once

#include <optional>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Empty without --tp-comm-overlap. One buffer of [sequence x micro-batch / context, hidden] in the
/// plan's type for each of ten products (initialize_ub, transformer_engine/pytorch/module/base.py,
/// release 2.1; _initialize_tp_communicators, megatron/training/initialize.py).
std::optional<MemoryTerm> user_buffer_memory(const Plan& plan);

}  // namespace estimator
