#include "estimator/memory/user_buffer_memory.h"

#include <fmt/format.h>

namespace estimator {

std::optional<MemoryTerm> user_buffer_memory(const Plan& plan) {
  // fprop and dgrad of qkv, proj, fc1 and fc2, and wgrad of qkv and fc1.
  constexpr int64_t kBuffers = 10;
  if (!plan.parallelism.tp_comm_overlap) return {};
  const TrainingConfig& t = plan.training;
  const int64_t tokens = t.sequence_length.value() * t.micro_batch_size / plan.parallelism.context;
  const int64_t bytes = kBuffers * tokens * plan.model.hidden_size * bytes_per_element(t.dtype);
  return exact_memory("user buffers",
                      bytes,
                      Source::kComputed,
                      fmt::format("{} of TransformerEngine, {} tokens x {} each",
                                  kBuffers,
                                  tokens,
                                  plan.model.hidden_size));
}

}  // namespace estimator
