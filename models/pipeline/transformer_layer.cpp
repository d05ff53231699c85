#include "models/pipeline/transformer_layer.h"

#include "models/attention/latent_attention.h"
#include "models/experts/expert_mlp.h"
#include "models/layers/dropout.h"
#include "models/layers/mlp.h"
#include "models/layers/recompute.h"

namespace models {
namespace {

std::string layer_name(int64_t number) { return "layers." + std::to_string(number); }

std::unique_ptr<const FeedForward> make_feed_forward(ShardContext& context,
                                                     ParameterStore& store,
                                                     int64_t number,
                                                     const SharedParts& shared) {
  const std::string name = layer_name(number) + ".mlp";
  const estimator::ModelConfig& model = context.plan.model;
  if (!model.has_experts_in(number)) {
    return std::make_unique<Mlp>(context, store, name, model.ffn_hidden_size);
  }
  return std::make_unique<ExpertMlp>(context, store, name, shared.dispatcher);
}

/// Megatron-LM's attention registers its output projection before all else (Attention in
/// megatron/core/transformer/attention.py), and TransformerEngine's layer for query, key and value
/// has the norm before it; other norms are layers of their own.
Norm make_attention_norm(ShardContext& context, ParameterStore& store, const std::string& name) {
  const bool of_projection =
      context.transformer_engine() && !context.plan.model.multi_latent_attention;
  if (of_projection) store.mark_place();
  Norm norm(context, store, name);
  if (!of_projection) store.mark_place();
  return norm;
}

std::unique_ptr<const Attention> make_attention(ShardContext& context,
                                                ParameterStore& store,
                                                const std::string& name,
                                                const SharedParts& shared) {
  if (context.plan.model.multi_latent_attention) {
    return std::make_unique<const LatentAttention>(context, store, name, shared.core);
  }
  return std::make_unique<const SelfAttention>(context, store, name, shared.core, shared.rotary);
}

}  // namespace

TransformerLayer::TransformerLayer(ShardContext& context,
                                   ParameterStore& store,
                                   const LayerNumber& number,
                                   const SharedParts& shared)
    : context_(context),
      name_(layer_name(number.of_model)),
      recomputed_(estimator::recomputed(context.plan, number.of_rank)),
      attention_norm_(make_attention_norm(context, store, name_ + ".input_layernorm")),
      attention_(make_attention(context, store, name_ + ".self_attention", shared)),
      mlp_norm_(context, store, name_ + ".pre_mlp_layernorm"),
      mlp_(make_feed_forward(context, store, number.of_model, shared)) {}

at::Tensor TransformerLayer::forward(const at::Tensor& input) const {
  using enum estimator::Recomputed;
  if (recomputed_ != kLayer && recomputed_ != kUnlistedOperators) return compute(input);
  const auto segment = [this](const torch::autograd::variable_list& inputs) {
    return compute(inputs[0]);
  };
  // create_selective_checkpoint_contexts, which keeps outputs, takes no reentrant checkpoint.
  return checkpoint(
      segment,
      {input},
      context_.observer,
      {.keeper = context_.keeper, .holds_output = !context_.framework().selective_by_operator});
}

at::Tensor TransformerLayer::compute(const at::Tensor& input) const {
  Observer& observer = context_.observer;
  const bool fused = context_.plan.training.bias_dropout_fusion;
  const BiasDropoutAdd add{.probability = context_.plan.model.hidden_dropout,
                           .fused = fused && context_.framework().megatron_fusions,
                           .compiled = fused && context_.framework().compiled_dropout,
                           .computes = context_.device_computes};
  ModuleScope scope(observer, name_);

  const auto normalized = [&](const Norm& norm, const char* name, const at::Tensor& tensor) {
    ModuleScope norm_scope(observer, name);
    return norm.forward(tensor);
  };
  const at::Tensor attended =
      bias_dropout_add(attention_->forward(normalized(attention_norm_, "input_layernorm", input)),
                       attention_->bias(),
                       input,
                       add);
  return bias_dropout_add(mlp_->forward(normalized(mlp_norm_, "pre_mlp_layernorm", attended)),
                          mlp_->bias(),
                          attended,
                          add);
}

}  // namespace models
