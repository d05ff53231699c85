#include <algorithm>
#include <utility>

#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

constexpr int64_t kLargestSize = 1'000'000'000;  // of one dimension of the model
// What is larger is a mistake in typing: published models have up to 1,000 layers (DeepNet, arXiv
// 2203.00555), 128 heads, a width of 25,600, 2,048 experts and 262,144 tokens.
constexpr int64_t kMostLayers = 4096, kMostHeads = 4096, kLargestWidth = 1 << 18;
constexpr int64_t kLargestHidden = 64 * kLargestWidth;
constexpr int64_t kMostExperts = 4096, kLargestVocabulary = 1 << 24, kMostPredictions = 64;

/// A size that a model without a preset has from the user alone; 0 stands where nobody gave it.
struct GivenSize {
  int64_t ModelConfig::*value;
  const char* key;
  const char* flag;
  const char* example;
  int64_t most;
};
constexpr GivenSize kGivenSizes[] = {
    {&ModelConfig::num_layers, "num_layers", "--num-layers", "32", kMostLayers},
    {&ModelConfig::hidden_size, "hidden_size", "--hidden-size", "4096", kLargestWidth},
    {&ModelConfig::num_attention_heads,
     "num_attention_heads",
     "--num-attention-heads",
     "32",
     kMostHeads},
    {&ModelConfig::vocab_size, "vocab_size", "--vocab-size", "50257", kLargestVocabulary},
    {&ModelConfig::max_position_embeddings,
     "max_position_embeddings",
     "--max-position-embeddings",
     "4096",
     kLargestSize}};

void check_given_sizes(Rules& rules) {
  for (const GivenSize& size : kGivenSizes) {
    const int64_t value = rules.plan().model.*size.value;
    const std::string key = fmt::format("model.{}", size.key);
    if (value != 0) {
      rules.in_range(1, size.most, value, key);
      continue;
    }
    rules.require(false,
                  fmt::format("the model has no {}", size.key),
                  key + " = 0",
                  fmt::format("give {} (such as {}), or {} in a file, or name a model of `onerank "
                              "list models`",
                              size.flag,
                              size.example,
                              key));
  }
}

void check_heads(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.in_range(1, kMostHeads, m.num_query_groups, "model.num_query_groups");
  const bool has_width = m.num_attention_heads <= m.hidden_size || m.kv_channels > 0;
  rules.require(has_width,
                "there are more attention heads than columns of the model",
                fmt::format("model.num_attention_heads = {}, model.hidden_size = {}",
                            m.num_attention_heads,
                            m.hidden_size),
                "use fewer heads, or give --kv-channels, the width of a head");
  if (has_width) rules.in_range(1, kLargestWidth, m.kv_channels, "model.kv_channels");
}

/// Widths and counts, which a model derives from its sizes where the plan does not give them.
void check_derived_sizes(Rules& rules) {
  struct DerivedSize {
    const char* key;
    int64_t value, least, most;
  };
  const ModelConfig& m = rules.plan().model;
  const DerivedSize sizes[] = {{"q_lora_rank", m.q_lora_rank, 0, kLargestWidth},
                               {"kv_lora_rank", m.kv_lora_rank, 1, kLargestWidth},
                               {"qk_head_dim", m.qk_head_dim, 1, kLargestWidth},
                               {"qk_pos_emb_head_dim", m.qk_pos_emb_head_dim, 1, kLargestWidth},
                               {"v_head_dim", m.v_head_dim, 1, kLargestWidth},
                               {"ffn_hidden_size", m.ffn_hidden_size, 1, kLargestHidden},
                               {"num_experts", m.num_experts, 0, kMostExperts},
                               {"moe_router_topk", m.moe_router_topk, 1, kMostExperts},
                               {"mtp_num_layers", m.mtp_num_layers, 0, kMostPredictions},
                               {"moe_ffn_hidden_size", m.moe_ffn_hidden_size, 0, kLargestHidden},
                               {"moe_shared_expert_intermediate_size",
                                m.moe_shared_expert_intermediate_size,
                                0,
                                kLargestHidden}};
  for (const DerivedSize& size : sizes) {
    rules.in_range(size.least, size.most, size.value, fmt::format("model.{}", size.key));
  }
}

void check_constants(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(m.norm_epsilon > 0,
                "the norm's epsilon is not positive",
                fmt::format("model.norm_epsilon = {}", m.norm_epsilon),
                "use 1e-5");
  rules.require(m.rotary_base > 1,
                "the rotary base is not above 1",
                fmt::format("model.rotary_base = {}", m.rotary_base),
                "use 10000");
  rules.require(m.rotary_percent > 0 && m.rotary_percent <= 1,
                "the part of a head with rotary positions is not in (0, 1]",
                fmt::format("model.rotary_percent = {}", m.rotary_percent),
                "use 1 for the whole head");
  for (const auto& [key, value] : {std::pair{"model.hidden_dropout", m.hidden_dropout},
                                   std::pair{"model.attention_dropout", m.attention_dropout}}) {
    rules.require(value >= 0 && value < 1,
                  "a dropout probability is not in [0, 1)",
                  fmt::format("{} = {}", key, value),
                  "use 0 for no dropout");
  }
}

double real(int64_t value) { return static_cast<double>(value); }

/// Parameters of a model each of whose layers has all that any of them has: no fewer than its own.
double most_parameters(const ModelConfig& m) {
  constexpr double kMatricesOfMlp = 3, kVectorsOfLayer = 16;
  const double widths = real(m.ffn_hidden_size) +
                        real(m.num_experts) * real(m.moe_ffn_hidden_size + 1) +
                        real(m.moe_shared_expert_intermediate_size);
  const double layer = real(attention_parameter_count(m)) +
                       real(m.hidden_size) * (kMatricesOfMlp * widths + kVectorsOfLayer);
  const double predictions = real(m.mtp_num_layers) * real(prediction_parameter_count(m));
  return real(m.all_layers()) * layer + predictions +
         real(m.hidden_size) * (2 * real(m.vocab_size) + real(m.max_position_embeddings));
}

}  // namespace

void check_model_ranges(Rules& rules) {
  check_given_sizes(rules);
  check_heads(rules);
  check_derived_sizes(rules);
  check_constants(rules);
}

void check_model_size(Rules& rules) {
  constexpr int64_t kLargestMatrix = int64_t{1} << 40;
  constexpr double kMostParameters = 1e15;
  const ModelConfig& m = rules.plan().model;
  const int64_t width = std::max({m.ffn_hidden_size,
                                  m.moe_ffn_hidden_size,
                                  m.moe_shared_expert_intermediate_size,
                                  m.vocab_size});
  rules.require(m.hidden_size * width < kLargestMatrix,
                "a matrix of the model is too large",
                fmt::format("model.hidden_size = {}, the widest matrix {}", m.hidden_size, width),
                "no matrix may have 2^40 elements: use a smaller width");
  const double parameters = most_parameters(m);
  rules.require(
      parameters <= kMostParameters,
      "the model has too many parameters",
      fmt::format("layers, widths and experts of \"model\" give about {:.1e}", parameters),
      "use sizes whose model has at most 1e15");
}

}  // namespace estimator
