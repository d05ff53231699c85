#include "models/transformer_layer.h"

#include "models/dropout.h"
#include "models/latent_attention.h"
#include "models/recompute.h"

namespace models {
namespace {

std::string layer_name(int64_t number) { return "layers." + std::to_string(number); }

std::unique_ptr<const Attention> make_attention(ShardContext& context,
                                                ParameterStore& store,
                                                const std::string& name,
                                                std::shared_ptr<const CoreAttention> core,
                                                std::shared_ptr<const RotaryEmbedding> rotary) {
  if (context.plan.model.multi_latent_attention) {
    return std::make_unique<const LatentAttention>(context, store, name, std::move(core));
  }
  return std::make_unique<const SelfAttention>(
      context, store, name, std::move(core), std::move(rotary));
}

}  // namespace

TransformerLayer::TransformerLayer(ShardContext& context,
                                   ParameterStore& store,
                                   int64_t number,
                                   std::shared_ptr<const CoreAttention> core,
                                   std::shared_ptr<const RotaryEmbedding> rotary)
    : context_(context),
      name_(layer_name(number)),
      attention_norm_(context, store, name_ + ".attention_norm"),
      attention_(make_attention(
          context, store, name_ + ".self_attention", std::move(core), std::move(rotary))),
      mlp_norm_(context, store, name_ + ".mlp_norm"),
      mlp_(context, store, name_ + ".mlp") {}

at::Tensor TransformerLayer::forward(const at::Tensor& input) const {
  if (context_.plan.training.recompute != estimator::Recompute::kFull) return compute(input);
  const auto segment = [this](const torch::autograd::variable_list& inputs) {
    return compute(inputs[0]);
  };
  return checkpoint(segment, {input}, context_.observer);
}

at::Tensor TransformerLayer::compute(const at::Tensor& input) const {
  Observer& observer = context_.observer;
  const double probability = context_.plan.model.hidden_dropout;
  ModuleScope scope(observer, name_);

  const auto normalized = [&](const Norm& norm, const char* name, const at::Tensor& tensor) {
    ModuleScope norm_scope(observer, name);
    return norm.forward(tensor);
  };
  const at::Tensor attended =
      bias_dropout_add(attention_->forward(normalized(attention_norm_, "attention_norm", input)),
                       attention_->bias(),
                       input,
                       probability);
  return bias_dropout_add(mlp_.forward(normalized(mlp_norm_, "mlp_norm", attended)),
                          mlp_.bias(),
                          attended,
                          probability);
}

}  // namespace models
