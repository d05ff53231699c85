#include "estimator/plan/frameworks.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

std::vector<Remedy> tensor_sizes(int64_t value, int64_t wanted) {
  return {{"a tensor parallel size of {}", "parallelism.tensor", divisors_near(value, wanted)}};
}

/// Fewer key/value heads than tensor ranks: Megatron-LM cuts their columns, and lets equally many
/// ranks use each head (megatron/core/transformer/attention.py).
void check_key_value_split(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  const int64_t tensor = rules.plan().parallelism.tensor, groups = m.num_query_groups;
  const std::string where =
      fmt::format("model.num_query_groups = {}, parallelism.tensor = {}", groups, tensor);
  const bool shared = tensor % groups == 0 && groups < tensor;
  rules.require(groups % tensor == 0 || shared,
                "key/value heads and the tensor parallel size do not divide each other",
                where,
                "use another tensor parallel size",
                tensor_sizes(groups, tensor));
  if (!shared) return;
  rules.require(traits_of(rules.plan().training.framework).shared_query_groups,
                "only Megatron-LM lets tensor ranks use the same key/value head",
                where + ", training.framework = " + to_string(rules.plan().training.framework),
                "use --framework megatron-lm",
                tensor_sizes(groups, tensor));
  rules.require(2 * groups * m.kv_channels % tensor == 0,
                "the columns of keys and values do not divide by the tensor parallel size",
                where + fmt::format(", model.kv_channels = {}", m.kv_channels),
                "use another tensor parallel size",
                tensor_sizes(groups, tensor));
}

void check_query_groups(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(m.num_attention_heads % m.num_query_groups == 0,
                "query heads do not divide by the key/value heads",
                fmt::format("model.num_attention_heads = {}, model.num_query_groups = {}",
                            m.num_attention_heads,
                            m.num_query_groups),
                "use a number of query groups that divides the attention heads",
                {{"{} query groups",
                  "model.num_query_groups",
                  divisors_near(m.num_attention_heads, m.num_query_groups)}});
}

void check_vocabulary_split(Rules& rules) {
  const Plan& plan = rules.plan();
  const int64_t tensor = plan.parallelism.tensor;
  rules.require(
      plan.padded_vocab_size() % tensor == 0,
      "the vocabulary does not divide by the tensor parallel size",
      fmt::format("model.vocab_size = {}, parallelism.tensor = {}", plan.model.vocab_size, tensor),
      "give --make-vocab-size-divisible-by 128 to pad it as Megatron does");
}

void check_rotary_width(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(m.position_embedding != PositionEmbedding::kRope || m.multi_latent_attention ||
                    (m.rotary_width() > 0 && m.rotary_width() % 2 == 0),
                "rotary positions need an even head width",
                fmt::format("model.kv_channels = {}, rotary_percent = {}: {} with positions",
                            m.kv_channels,
                            m.rotary_percent,
                            m.rotary_width()),
                "use an even kv_channels, and a rotary_percent that leaves an even part of it");
}

}  // namespace

void check_tensor_split(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  const int64_t tensor = rules.plan().parallelism.tensor;
  const auto splits = [&](int64_t value, const std::string& key, const std::string& what) {
    rules.require(value % tensor == 0,
                  what + " do not divide by the tensor parallel size",
                  fmt::format("{} = {}, parallelism.tensor = {}", key, value, tensor),
                  "use another tensor parallel size",
                  tensor_sizes(value, tensor));
  };
  splits(m.num_attention_heads, "model.num_attention_heads", "attention heads");
  splits(m.ffn_hidden_size, "model.ffn_hidden_size", "the MLP's columns");
  check_key_value_split(rules);
  check_query_groups(rules);
  check_vocabulary_split(rules);
  check_rotary_width(rules);
}

/// As Megatron-LM's validate_args asks for (megatron/training/arguments.py): user buffers are
/// TransformerEngine's, for activations that are split by sequence.
void check_user_buffers(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const TrainingConfig& t = rules.plan().training;
  rules.require(p.tp_comm_overlap || !p.tp_comm_overlap_disable_qkv,
                "the key takes one product out of the overlap with the tensor ranks' communication",
                "parallelism.tp_comm_overlap_disable_qkv without parallelism.tp_comm_overlap",
                "add --tp-comm-overlap, or leave it out");
  if (!p.tp_comm_overlap) return;
  rules.require(
      traits_of(t.framework).transformer_engine &&
          t.transformer_impl == TransformerImpl::kTransformerEngine,
      "only TransformerEngine overlaps the tensor ranks' communication with matrix products",
      fmt::format(
          "parallelism.tp_comm_overlap, training.framework = {}, training.transformer_impl = {}",
          to_string(t.framework),
          to_string(t.transformer_impl)),
      "leave it out, or use training.framework = megatron-lm with transformer_engine");
  rules.require(p.sequence_parallel,
                "TransformerEngine's user buffers need sequence parallelism",
                "parallelism.tp_comm_overlap without parallelism.sequence_parallel",
                "add --sequence-parallel, or leave out --tp-comm-overlap");
}

}  // namespace estimator
