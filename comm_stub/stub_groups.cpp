#include "comm_stub/stub_groups.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace comm_stub {

StubGroups make_stub_groups(const estimator::ParallelLayout& layout,
                            int64_t rank,
                            const std::vector<estimator::GroupKind>& kinds,
                            const CallSink& sink,
                            const StubOptions& options) {
  StubGroups backends;
  for (const estimator::GroupKind kind : kinds) {
    const estimator::RankGroup group = layout.group(kind, rank);
    const int64_t member_index = group.index_of(rank);
    if (group.size() == 1 || member_index < 0) continue;
    backends[kind] = make_stub_backend(group, member_index, sink, options);
  }
  return backends;
}

}  // namespace comm_stub
