#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

/// Keys that say something of latents alone.
void check_unused_latent_keys(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  const ModelConfig defaults;
  const auto unused = [&](bool is_default, const std::string& key) {
    rules.require(is_default,
                  "the key belongs to multi-latent attention",
                  "model." + key + " without model.multi_latent_attention",
                  "leave it out, or add --multi-latent-attention");
  };
  unused(m.q_lora_rank == defaults.q_lora_rank, "q_lora_rank");
  unused(m.kv_lora_rank == defaults.kv_lora_rank, "kv_lora_rank");
  unused(m.qk_head_dim == defaults.qk_head_dim, "qk_head_dim");
  unused(m.qk_pos_emb_head_dim == defaults.qk_pos_emb_head_dim, "qk_pos_emb_head_dim");
  unused(m.v_head_dim == defaults.v_head_dim, "v_head_dim");
}

void check_projections(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(m.qk_pos_emb_head_dim % 2 == 0,
                "rotary positions need an even head width",
                fmt::format("model.qk_pos_emb_head_dim = {}", m.qk_pos_emb_head_dim),
                "use an even one");
  rules.require(m.num_query_groups == m.num_attention_heads,
                "multi-latent attention has a key and a value for each query head",
                fmt::format("model.num_query_groups = {}, model.num_attention_heads = {}",
                            m.num_query_groups,
                            m.num_attention_heads),
                "leave num_query_groups out");
  rules.require(!m.add_qkv_bias && !m.add_attention_bias,
                "multi-latent attention has no bias on query, key and value",
                "model.add_qkv_bias or add_attention_bias",
                "leave it out");
}

/// What is built for it here, of what Megatron-LM can do.
void check_layout(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const TrainingConfig& t = rules.plan().training;
  rules.require(traits_of(t.framework).latent_attention,
                "multi-latent attention is not supported for this framework",
                "model.multi_latent_attention, training.framework = " + to_string(t.framework),
                "use training.framework = megatron-lm or plain");
  rules.require(t.transformer_impl == TransformerImpl::kTransformerEngine,
                "multi-latent attention is supported only with TransformerEngine's layers",
                "training.transformer_impl = " + to_string(t.transformer_impl),
                "use transformer_engine");
  rules.require(p.context == 1,
                "multi-latent attention does not work with context parallelism yet",
                fmt::format("parallelism.context = {}", p.context),
                "use a context parallel size of 1");
  // MLASelfAttention in megatron/core/transformer/multi_latent_attention.py gathers the shared key,
  // and so sums its gradient, under sequence parallelism alone.
  rules.require(p.tensor == 1 || p.sequence_parallel,
                "without sequence parallelism the gradient of multi-latent attention's shared key "
                "is not summed over the tensor ranks",
                fmt::format("parallelism.tensor = {}", p.tensor),
                "add --sequence-parallel");
  rules.require(!p.tp_comm_overlap,
                "multi-latent attention's layers have no user buffers yet",
                "parallelism.tp_comm_overlap",
                "leave it out");
}

/// TransformerEngine 2.11 and before: "Disabling FlashAttention 2 as it does not support MLA"
/// (get_attention_backend in attention/dot_product_attention/utils.py).
void check_kernel(Rules& rules) {
  const Plan& plan = rules.plan();
  const ModelConfig& m = plan.model;
  const bool flash =
      plan.training.attention == Attention::kFlash || plan.training.attention == Attention::kFlash1;
  const bool transformer_engine = traits_of(plan.training.framework).transformer_engine;
  rules.require(
      !flash || !transformer_engine || m.key_width() == m.value_width(),
      "TransformerEngine runs no flash-attn for keys and values of different widths",
      fmt::format("training.attention = {}, {} and {} wide (qk_head_dim + qk_pos_emb_head_dim, "
                  "v_head_dim)",
                  to_string(plan.training.attention.value()),
                  m.key_width(),
                  m.value_width()),
      "use training.attention = fused or unfused");
  // The value is padded to the key's width; the other way around nothing of the output could be
  // cut off again.
  rules.require(
      !flash || transformer_engine || m.value_width() <= m.key_width(),
      "flash attention runs on values that are as wide as their keys or padded to that, not wider",
      fmt::format("training.attention = {}, {} and {} wide (qk_head_dim + qk_pos_emb_head_dim, "
                  "v_head_dim)",
                  to_string(plan.training.attention.value()),
                  m.key_width(),
                  m.value_width()),
      "use training.attention = unfused");
}

}  // namespace

void check_latent_attention(Rules& rules) {
  if (!rules.plan().model.multi_latent_attention) return check_unused_latent_keys(rules);
  check_projections(rules);
  check_layout(rules);
  check_kernel(rules);
}

}  // namespace estimator
