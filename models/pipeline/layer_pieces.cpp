#include "models/pipeline/layer_pieces.h"

#include <deque>
#include <utility>

#include "estimator/plan/cuda_graphs.h"
#include "estimator/plan/quantization.h"
#include "models/shard/host_work.h"

namespace models {

using estimator::PieceKind;

namespace {

/// "AlltoAll dispatcher with local_num_experts=1, HybridEP, and NCCL EP all use identity operation
/// for `dispatch_postprocess`", so that products keep what arrives, unless they quantize it.
bool frees_arrived(const estimator::Plan& plan) {
  const estimator::TrainingConfig& t = plan.training;
  if (estimator::quantizes(t)) return true;
  if (t.moe_token_dispatcher_type == estimator::TokenDispatcher::kFlex) {
    return t.moe_flex_dispatcher_backend == estimator::FlexBackend::kDeepEp;
  }
  return plan.experts_of_rank() > 1;
}

/// Tokens that DeepEP or HybridEP send are needed again, and those of a CUDA graph have a fixed
/// place.
bool frees_sent(const estimator::TrainingConfig& training) {
  const auto span = estimator::graph_span(training, /*has_experts=*/true);
  const bool in_graph = span && span->holds(estimator::GraphModule::kMoePreprocess);
  return training.moe_token_dispatcher_type == estimator::TokenDispatcher::kAllToAll && !in_graph;
}

}  // namespace

LayerPieces::LayerPieces(const ShardContext& context,
                         const TransformerLayer& layer,
                         LayerSurroundings surroundings)
    : context_(context),
      layer_(layer),
      surroundings_(std::move(surroundings)),
      pieces_(estimator::kPieceKinds) {}

bool LayerPieces::has(PieceKind kind) const {
  switch (kind) {
    case PieceKind::kDispatch:
    case PieceKind::kCombine:
      return layer_.is_of_experts();
    case PieceKind::kPrediction:
      return surroundings_.prediction != nullptr;
    case PieceKind::kMlpWeights:
    case PieceKind::kAttentionWeights:
      return context_.delayed_gradients != nullptr;
    default:
      return true;
  }
}

bool LayerPieces::frees_inputs(PieceKind kind) const {
  if (!layer_.is_of_experts()) return false;
  if (kind == PieceKind::kMlp) return frees_arrived(context_.plan);
  if (kind == PieceKind::kDispatch) return frees_sent(context_.plan.training);
  return kind == PieceKind::kCombine;
}

LayerPieces::Tensors LayerPieces::forward(PieceKind kind, const Tensors& inputs) {
  using Step = Tensors (LayerPieces::*)(const Tensors&);
  constexpr std::pair<PieceKind, Step> kSteps[] = {{PieceKind::kAttention, &LayerPieces::attend},
                                                   {PieceKind::kDispatch, &LayerPieces::dispatch},
                                                   {PieceKind::kMlp, &LayerPieces::run_mlp},
                                                   {PieceKind::kCombine, &LayerPieces::combine},
                                                   {PieceKind::kPrediction, &LayerPieces::predict}};
  std::deque<ModuleScope> scopes;
  for (const std::string& module : surroundings_.modules) {
    scopes.emplace_back(context_.observer, module);
  }
  for (const auto& [of, own_step] : kSteps) {
    if (of != kind) continue;
    const Step step = own_step;
    Tensors outputs =
        piece(kind).forward(inputs, [&](const Tensors& read) { return (this->*step)(read); });
    if (frees_inputs(kind)) piece(kind).free_inputs(outputs);
    return outputs;
  }
  return inputs;
}

/// The Python of the layer's modules runs as in a layer that is not cut; that of the pieces
/// themselves has no price.
LayerPieces::Tensors LayerPieces::attend(const Tensors& inputs) {
  begin_python("TransformerLayer");
  if (layer_.is_of_experts()) begin_python("MoELayer");
  if (surroundings_.before) surroundings_.before();
  const at::Tensor input = surroundings_.first ? surroundings_.first(inputs[0]) : inputs[0];
  at::Tensor hidden = layer_.attend(input);
  if (!layer_.is_of_experts()) return {hidden};
  routed_ = layer_.route(hidden);
  GraphPiece& own = piece(PieceKind::kAttention);
  routed_.hidden = own.hand_over(routed_.hidden);
  routed_.shared = own.hand_over(routed_.shared);
  return {std::move(routed_.tokens.rows), std::move(routed_.tokens.weights)};
}

LayerPieces::Tensors LayerPieces::dispatch(const Tensors& inputs) {
  routed_.tokens.rows = inputs[0];
  routed_.tokens.weights = inputs[1];
  routed_.tokens = layer_.send(std::move(routed_.tokens));
  routed_.tokens.held.clear();
  routed_.tokens.weights = piece(PieceKind::kDispatch).hand_over(routed_.tokens.weights);
  return {std::move(routed_.tokens.rows)};
}

LayerPieces::Tensors LayerPieces::run_mlp(const Tensors& inputs) {
  if (!layer_.is_of_experts()) return with_last(layer_.think(inputs[0]));
  routed_.tokens.rows = inputs[0];
  at::Tensor rows = layer_.run_experts(routed_);
  routed_.tokens.weights = at::Tensor();
  return {std::move(rows)};
}

LayerPieces::Tensors LayerPieces::combine(const Tensors& inputs) {
  at::Tensor output = layer_.combine(inputs[0], routed_);
  routed_ = {};
  return with_last(std::move(output));
}

LayerPieces::Tensors LayerPieces::predict(const Tensors& inputs) {
  return {surroundings_.prediction(inputs[0])};
}

LayerPieces::Tensors LayerPieces::with_last(at::Tensor output) const {
  begin_python_in_backward("TransformerLayerBackward", output);
  return {surroundings_.last ? surroundings_.last(output) : std::move(output)};
}

LayerPieces::Tensors LayerPieces::backward(PieceKind kind, Tensors gradients) {
  if (kind == PieceKind::kMlpWeights || kind == PieceKind::kAttentionWeights) {
    run_delayed(std::exchange(kind == PieceKind::kMlpWeights ? of_mlp_ : of_attention_, {}),
                context_.observer);
    return gradients;
  }
  Tensors of_inputs = piece(kind).backward(std::move(gradients));
  if (!context_.delayed_gradients) return of_inputs;
  auto products = context_.delayed_gradients->take_all();
  (kind == PieceKind::kMlp ? of_mlp_ : of_attention_) = std::move(products);
  return of_inputs;
}

}  // namespace models
