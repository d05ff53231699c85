// What the dialects of a plan mean: one row for each, read by the shard that is built from it and
// by `onerank list dialects`.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "estimator/plan.h"

namespace estimator {

/// What of the logits lives in the loss: one fp32 buffer in which softmax and gradient take turns,
/// two of them (the input stays), or PyTorch's own operators (log-softmax, its gradient).
enum class LossBuffers { kOne, kTwo, kTorch };
constexpr std::array<EnumName<LossBuffers>, 3> enum_names(LossBuffers) {
  return {{{LossBuffers::kOne, "one"}, {LossBuffers::kTwo, "two"}, {LossBuffers::kTorch, "torch"}}};
}

/// In which type gradients are summed over micro-batches.
enum class GradientType { kFp32, kFp32UnlessFp16, kParameter };
constexpr std::array<EnumName<GradientType>, 3> enum_names(GradientType) {
  return {{{GradientType::kFp32, "fp32"},
           {GradientType::kFp32UnlessFp16, "fp32_unless_fp16"},
           {GradientType::kParameter, "parameter"}}};
}

struct DialectTraits {
  Dialect dialect = Dialect::kPlain;
  std::string framework;
  bool transformer_engine = false;
  bool fused_gated_activation = false;
  bool fused_rotary = false;
  bool batch_first_attention = false;
  bool fused_weight_gradient = false;
  bool keeps_gathered_input = false;
  bool keeps_stage_outputs = false;
  LossBuffers loss_buffers = LossBuffers::kTorch;
  GradientType gradient_type = GradientType::kFp32;
  bool main_weights = true;
  bool reducer_buckets = false;
  bool fully_sharded = false;
  bool always_buckets = true;
  bool shared_step_counter = false;
  bool overlapped_sends = true;
  bool partitioned_sends = false;
  int64_t vocabulary_multiple = 1;
  std::vector<std::string> notes;
};

template <class Visitor>
void visit_fields(Visitor& visit, DialectTraits& traits) {
  visit("name", traits.dialect, "as training.dialect");
  visit("framework", traits.framework, "what it stands for");
  visit("transformer_engine", traits.transformer_engine, "layers may be TransformerEngine's");
  visit("fused_gated_activation",
        traits.fused_gated_activation,
        "SwiGLU and GEGLU keep their input alone");
  visit("fused_rotary", traits.fused_rotary, "rotary positions have no temporaries");
  visit("batch_first_attention",
        traits.batch_first_attention,
        "flash attention copies its inputs and its output between [s, b] and [b, s]");
  visit("fused_weight_gradient",
        traits.fused_weight_gradient,
        "products add weight gradients into the fp32 buffer");
  visit("keeps_gathered_input",
        traits.keeps_gathered_input,
        "under sequence parallelism the gathered input is kept for backward");
  visit(
      "keeps_stage_outputs", traits.keeps_stage_outputs, "what a stage sent stays until backward");
  visit("loss_buffers", traits.loss_buffers, "buffers of the logits' shape in the loss");
  visit("gradient_type", traits.gradient_type, "in which gradients are summed");
  visit("main_weights", traits.main_weights, "the optimizer has fp32 copies of the parameters");
  visit("reducer_buckets",
        traits.reducer_buckets,
        "DistributedDataParallel's buckets, as large as the parameters, beside the gradients");
  visit("fully_sharded",
        traits.fully_sharded,
        "ZeRO stages 2 and 3 are FSDP2: fp32 parts, computation in the plan's dtype");
  visit("always_buckets", traits.always_buckets, "gradients are cut into buckets on every stage");
  visit("shared_step_counter", traits.shared_step_counter, "one for the optimizer, not one each");
  visit("overlapped_sends",
        traits.overlapped_sends,
        "without interleaving: a pipeline stage goes on while it sends");
  visit("partitioned_sends",
        traits.partitioned_sends,
        "each tensor rank sends its part of what a stage hands on, and the receivers gather it");
  visit("vocabulary_multiple",
        traits.vocabulary_multiple,
        "the vocabulary is padded to a multiple of this x tensor");
  visit("notes", traits.notes, "what else it means, and what is simplified");
}

const std::vector<DialectTraits>& dialects();
const DialectTraits& traits_of(Dialect dialect);

}  // namespace estimator
