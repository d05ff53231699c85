#include "estimator/step/chunk_shares.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace estimator {
namespace {

/// `amounts` over their sum; all of it in the first where there is none.
std::vector<double> shares_of(std::vector<double> amounts) {
  const double sum = std::accumulate(amounts.begin(), amounts.end(), 0.0);
  if (sum == 0) {
    amounts.front() = 1;
    return amounts;
  }
  for (double& amount : amounts) amount /= sum;
  return amounts;
}

/// The N of "layers.N.self_attention...", or -1.
int64_t layer_of(std::string_view parameter) {
  constexpr std::string_view kLayers = "layers.";
  int64_t layer = -1;
  if (parameter.starts_with(kLayers)) {
    parameter.remove_prefix(kLayers.size());
    std::from_chars(parameter.data(), parameter.data() + parameter.size(), layer);
  }
  return layer;
}

}  // namespace

ChunkShares::ChunkShares(const Plan& plan, int64_t stage, const ParametersRecord& parameters) {
  const auto chunks = static_cast<std::size_t>(plan.parallelism.virtual_stages);
  of_layers_ = of_first_ = of_last_ = of_parameters_ = std::vector<double>(chunks, 0.0);
  of_first_.front() = of_last_.back() = 1;
  const std::vector<int64_t> layers = plan.layers_of_chunks(stage);
  of_layers_ = shares_of({layers.begin(), layers.end()});
  if (chunks == 1 || parameters.tensors.empty()) {
    of_parameters_ = of_layers_;
    return;
  }
  std::vector<int64_t> chunk_of_layer;  // of the whole model
  const std::vector<int64_t> pieces = plan.layers_of_virtual_stages();
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    chunk_of_layer.insert(chunk_of_layer.end(),
                          pieces[piece],
                          static_cast<int64_t>(piece) / plan.parallelism.pipeline);
  }
  for (const ParameterRecord& parameter : parameters.tensors) {
    const int64_t layer = layer_of(parameter.name);
    const bool is_first = parameter.name.starts_with("embedding") && !parameter.shared_copy;
    const auto chunk = layer >= 0 ? static_cast<std::size_t>(chunk_of_layer.at(layer))
                                  : (is_first ? 0 : chunks - 1);
    of_parameters_[chunk] += static_cast<double>(parameter.bytes);
  }
  of_parameters_ = shares_of(std::move(of_parameters_));
}

const std::vector<double>& ChunkShares::of_module(std::string_view module) const {
  constexpr std::array kOfLastPiece = {"head", "final_layernorm", "output_layer", "loss"};
  const auto in_module = [&](const char* name) { return module.starts_with(name); };
  if (in_module("embedding")) return of_first_;
  const bool last = std::any_of(kOfLastPiece.begin(), kOfLastPiece.end(), in_module);
  return last ? of_last_ : of_layers_;
}

}  // namespace estimator
