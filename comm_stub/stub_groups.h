// The process groups of one rank, all of them stubs.
#pragma once

#include <map>
#include <vector>

#include "comm_stub/stub_backend.h"

namespace comm_stub {

using StubGroups = std::map<estimator::GroupKind, c10::intrusive_ptr<c10d::Backend>>;

/// Makes a stub for the group of each of `kinds`. A kind is left out when its group has one member
/// (it needs no communication) or when `rank` is not in it (kEmbedding on a middle stage).
StubGroups make_stub_groups(const estimator::ParallelLayout& layout,
                            int64_t rank,
                            const std::vector<estimator::GroupKind>& kinds,
                            const CallSink& sink,
                            const StubOptions& options = {});

}  // namespace comm_stub
