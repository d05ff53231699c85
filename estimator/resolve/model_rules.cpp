#include <algorithm>

#include "estimator/plan/option_table.h"
#include "estimator/resolve/given_sizes.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

void check_given_sizes(Rules& rules) {
  for (const GivenSize& size : kGivenSizes) {
    if (rules.plan().model.*size.value != 0) continue;
    const std::string path = fmt::format("model.{}", size.key);
    rules.require(false,
                  fmt::format("the model has no {}", size.key),
                  path + " = 0",
                  fmt::format("give {} (such as {}), or {} in a file, or name a model of `onerank "
                              "list models`",
                              first_flag_of(path),
                              size.example,
                              path));
  }
}

void check_heads(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(m.num_attention_heads <= m.hidden_size || m.kv_channels > 0,
                "there are more attention heads than columns of the model",
                fmt::format("model.num_attention_heads = {}, model.hidden_size = {}",
                            m.num_attention_heads,
                            m.hidden_size),
                "use fewer heads, or give --kv-channels, the width of a head");
}

/// A gated MLP of a very narrow model, whose width is rounded down to a multiple of 64.
void check_derived_width(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(m.ffn_hidden_size > 0 || m.hidden_size == 0,
                "the model is too narrow for the usual width of its MLP",
                fmt::format("model.hidden_size = {}, model.ffn_hidden_size = 0", m.hidden_size),
                "give --ffn-hidden-size");
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
  check_derived_width(rules);
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
