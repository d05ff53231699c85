// GPU memory of DeepEP's and HybridEP's buffers, outside PyTorch's allocator.
#pragma once

#include <optional>

#include "estimator/base/tagged.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The buffers of the dispatcher flex; empty without it. Throws UserError as
/// expert_dispatch_buffer_bytes() does.
std::optional<MemoryTerm> dispatcher_memory(const Plan& plan,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric);

}  // namespace estimator
