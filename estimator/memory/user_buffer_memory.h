// GPU memory of TransformerEngine's user buffers, outside PyTorch's allocator.
#pragma once

#include <optional>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The user buffers; empty without --tp-comm-overlap. Each of ten matrix products has one buffer of
/// shape [sequence x micro-batch / context, hidden] in the plan's type (initialize_ub,
/// transformer_engine/pytorch/module/base.py, release 2.1; _initialize_tp_communicators,
/// megatron/training/initialize.py).
std::optional<MemoryTerm> user_buffer_memory(const Plan& plan);

}  // namespace estimator
