// Of the model chunks of a stage, those whose parameters are gathered under FSDP2.
#pragma once

#include <cstdint>

namespace estimator {

/// Chunks that are gathered at once, where a stage has several: max_active_stages of
/// _add_unshard_reshard() in torch/distributed/pipelining/schedules.py.
inline constexpr int64_t kMostActiveChunks = 3;

}  // namespace estimator
