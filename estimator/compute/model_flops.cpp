#include "estimator/compute/model_flops.h"

#include <stdexcept>

namespace estimator {

StepFlops step_flops(const Plan& plan) {
  const ModelConfig& model = plan.model;
  const auto tokens = static_cast<double>(plan.tokens_per_step());
  const auto sequence = static_cast<double>(plan.sequence_length());
  const auto hidden = static_cast<double>(model.hidden_size);
  const auto query = static_cast<double>(model.num_attention_heads * model.kv_channels);
  const auto key_value = static_cast<double>(model.num_query_groups * model.kv_channels);
  const auto ffn = static_cast<double>(model.ffn_hidden_size);
  const double mlp_matrices = is_gated(model.activation) ? 3 : 2;

  // Forward passes only; one token multiplies each weight once.
  const double attention_linear = 2 * tokens * hidden * (2 * query + 2 * key_value);
  const double core_attention = 2 * 2 * tokens * sequence * query / 2;  // QK^T and PV, causal
  const double mlp = 2 * tokens * hidden * ffn * mlp_matrices;
  const double logits = 2 * tokens * hidden * static_cast<double>(plan.padded_vocab_size());
  const auto layers = static_cast<double>(model.num_layers);
  const double all_layers = layers * (attention_linear + core_attention + mlp);

  const double forward_and_backward = 3 * (all_layers + logits);
  const double full_attention = forward_and_backward + 3 * layers * core_attention;
  switch (plan.training.recompute) {
    case Recompute::kNone:
      return {forward_and_backward, full_attention, forward_and_backward};
    case Recompute::kSelective:
      return {forward_and_backward, full_attention, forward_and_backward + layers * core_attention};
    case Recompute::kFull:
      return {forward_and_backward, full_attention, forward_and_backward + all_layers};
  }
  throw std::logic_error("unknown recompute");
}

}  // namespace estimator
