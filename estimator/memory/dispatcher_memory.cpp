#include "estimator/memory/dispatcher_memory.h"

#include <fmt/format.h>

#include "estimator/communication/expert_dispatch.h"

namespace estimator {

std::optional<MemoryTerm> dispatcher_memory(const Plan& plan,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric) {
  if (!dispatches_experts(plan)) return std::nullopt;
  const ExpertDispatch call = expert_dispatch(plan, layout, fabric);
  return exact_memory("expert dispatcher",
                      expert_dispatch_buffer_bytes(call),
                      Source::kComputed,
                      fmt::format("buffers of {} for {} tokens x {} of each of {} ranks",
                                  to_string(call.backend),
                                  call.tokens,
                                  call.hidden_size,
                                  call.place.ranks));
}

}  // namespace estimator
