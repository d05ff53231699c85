#include <algorithm>

#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

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

void check_model_size(Rules& rules) {
  constexpr int64_t kLargestMatrix = int64_t{1} << 40;
  constexpr double kMostParameters = 1e15;
  const ModelConfig& m = rules.plan_.model;
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
