#include "estimator/memory/dispatcher_memory.h"

#include <fmt/format.h>

#include "estimator/communication/expert_dispatch.h"

namespace estimator {

std::optional<MemoryTerm> dispatcher_memory(const Plan& plan,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric) {
  if (!dispatches_experts(plan)) return std::nullopt;
  const ExpertDispatch call = expert_dispatch(plan, layout, fabric);
  const int64_t bytes = expert_dispatch_buffer_bytes(call);
  return MemoryTerm{.name = "expert dispatcher",
                    .value_bytes = bytes,
                    .low_bytes = bytes,
                    .high_bytes = bytes,
                    .source = Source::kComputed,
                    .note = fmt::format("buffers of {} for {} tokens x {} of each of {} ranks",
                                        to_string(call.backend),
                                        call.tokens,
                                        call.hidden_size,
                                        call.place.ranks)};
}

}  // namespace estimator
