#include "models/pipeline/stage.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/vstack.h>
#include <c10/core/GradMode.h>

#include "estimator/plan/attention_choice.h"

namespace models {

using estimator::RotaryMade;

namespace {

ParameterSource parameter_source(const ShardContext& context) {
  return {.observer = context.observer,
          .options = context.parameter_options(),
          .adapter_options = context.adapter_options(),
          .seed = context.plan.training.seed,
          .tensor = {.size = context.tensor_size(), .index = context.coordinate.tensor},
          .expert_tensor = {.size = context.plan.expert_tensor_size(),
                            .index = context.coordinate.expert_tensor},
          .experts = {.size = context.plan.parallelism.expert, .index = context.coordinate.expert},
          .data_part = context.data_part(),
          .expert_data_part = context.expert_data_part(),
          .part_type = context.part_type()};
}

/// Null without rotary positions or base, and for latent attention, whose layers have tables of
/// their own.
std::shared_ptr<const RotaryEmbedding> make_rotary(const ShardContext& context, double base) {
  const estimator::ModelConfig& model = context.plan.model;
  if (model.position_embedding != estimator::PositionEmbedding::kRope ||
      model.multi_latent_attention || base == 0) {
    return nullptr;
  }
  auto rotary = std::make_shared<const RotaryEmbedding>(context, base);
  if (context.framework().rotary_made == RotaryMade::kWithModel) rotary->tables();
  return rotary;
}

void make_window(const ShardContext& context, SharedParts& shared) {
  const estimator::Plan& plan = context.plan;
  AttentionWindow window;
  if (estimator::makes_window_mask(plan)) {
    shared.window = std::make_shared<WindowMask>(context);
    window.mask = shared.window;
  } else if (plan.exceeds_window()) {
    window.tokens = plan.model.sliding_window;
  } else {
    return;
  }
  shared.core_in_window = std::make_shared<const CoreAttention>(context, 0, window);
}

/// `tokens` of each expert on all ranks.
void update(const ExpertBalance& balance, const at::Tensor& tokens) {
  constexpr double kCoefficient = 1e-3;  // load_balance_coeff of MoEArgs
  const at::Tensor change = at::sign(tokens.mean() - tokens) * kCoefficient;
  balance.bias.add_(change - change.mean());
  balance.tokens.zero_();
}

bool has_dispatcher(const ShardContext& context) {
  return context.plan.model.has_experts() && !context.framework().stacked_experts;
}

}  // namespace

Stage::Stage(ShardContext& context) : context_(context), store_(parameter_source(context)) {
  SharedParts shared{
      .core = std::make_shared<const CoreAttention>(context),
      .rotary = make_rotary(context, context.plan.model.rotary_base),
      .rotary_in_window = make_rotary(context, context.plan.model.rotary_base_in_window),
      .dispatcher = has_dispatcher(context) ? make_token_dispatcher(context) : nullptr};
  make_window(context, shared);
  for (int64_t chunk = 0; chunk < context.chunks(); ++chunk) {
    const bool is_model = context.torch_pipeline();  // each chunk is a copy of the whole model
    if (chunk > 0 && (is_model || context.framework().rotary_made == RotaryMade::kAtFirstUse)) {
      shared.rotary = make_rotary(context, context.plan.model.rotary_base);
      shared.rotary_in_window = make_rotary(context, context.plan.model.rotary_base_in_window);
    }
    if (chunk > 0 && context.transformer_engine()) {
      shared.core = std::make_shared<const CoreAttention>(context, chunk);
    }
    store_.begin_chunk(chunk);
    chunks_.emplace_back(context, store_, chunk, shared);
  }
}

Parameter* Stage::tied_weight() const {
  for (const ModelChunk& chunk : chunks_) {
    if (chunk.tied_weight() != nullptr) return chunk.tied_weight();
  }
  return nullptr;
}

std::vector<int64_t> Stage::hidden_shape() const {
  return {context_.local_sequence(),
          context_.plan.training.micro_batch_size,
          context_.plan.model.hidden_size};
}

ChunkOutput Stage::forward(int64_t chunk,
                           const at::Tensor& input,
                           const MicroBatchData& data) const {
  return chunks_.at(chunk).forward(input, data);
}

/// _update_expert_bias in torchtitan/components/optimizer.py of v0.2.2, where tokens of layers that
/// are recomputed count twice.
void Stage::balance_experts() const {
  const c10::NoGradGuard no_grad;
  std::vector<const ExpertBalance*> balances;
  std::vector<at::Tensor> tokens;
  for (const ModelChunk& chunk : chunks_) {
    for (const TransformerLayer& layer : chunk.layers()) {
      const ExpertBalance* balance = layer.balance();
      if (balance == nullptr) continue;
      balances.push_back(balance);
      tokens.push_back(layer.is_checkpoint() ? at::floor_divide(balance->tokens, 2)
                                             : balance->tokens);
    }
  }
  if (balances.empty()) return;
  const at::Tensor of_layers = at::vstack(tokens);
  for (const auto& group : {context_.groups.data, context_.groups.instances}) {
    if (group) group->all_reduce(of_layers);
  }
  for (std::size_t i = 0; i < balances.size(); ++i) {
    update(*balances[i], of_layers[static_cast<int64_t>(i)]);
  }
}

}  // namespace models
