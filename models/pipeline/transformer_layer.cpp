#include "models/pipeline/transformer_layer.h"

#include <torch/csrc/autograd/custom_function.h>

#include "models/attention/latent_attention.h"
#include "models/experts/expert_mlp.h"
#include "models/experts/token_choice.h"
#include "models/layers/dropout.h"
#include "models/layers/mlp.h"
#include "models/layers/recompute.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/host_work.h"

namespace models {
namespace {

using enum estimator::RecomputeModule;
using estimator::GraphModule;
using torch::autograd::variable_list;

/// Of TransformerEngine's attention, which counts them also where it runs in 16 bits
/// (DotProductAttention.forward).
constexpr int64_t kProductsOfCore = 3;

constexpr const char* kAttentionNorm = "input_layernorm";
constexpr const char* kMlpNorm = "pre_mlp_layernorm";
constexpr const char* kAfterAttention = "post_self_attn_layernorm";
constexpr const char* kAfterMlp = "post_mlp_layernorm";

/// Of a bias that all tensor ranks add before their sum. Each has the gradient of the whole bias.
struct ShareOfBias : torch::autograd::Function<ShareOfBias> {
  static at::Tensor forward(torch::autograd::AutogradContext*,
                            const at::Tensor& bias,
                            int64_t ranks) {
    return bias / ranks;
  }
  static variable_list backward(torch::autograd::AutogradContext*, const variable_list& gradients) {
    return {gradients[0], at::Tensor()};
  }
};

std::unique_ptr<const FeedForward> make_feed_forward(ShardContext& context,
                                                     ParameterStore& store,
                                                     const std::string& name,
                                                     int64_t number,
                                                     const SharedParts& shared) {
  const estimator::ModelConfig& model = context.plan.model;
  if (!model.has_experts_in(number)) {
    return std::make_unique<Mlp>(context, store, name, model.ffn_hidden_size);
  }
  if (context.framework().stacked_experts) {
    return std::make_unique<TokenChoiceMlp>(context, store, name);
  }
  return std::make_unique<ExpertMlp>(context, store, name, shared.dispatcher);
}

/// Megatron-LM's attention registers its output projection before all else (Attention in
/// megatron/core/transformer/attention.py), and TransformerEngine's layer for query, key and value
/// has the norm before it; other norms are layers of their own. transformers' LlamaDecoderLayer
/// registers its norms after all else.
bool norm_in_projection(const ShardContext& context) {
  return context.transformer_engine() && !context.plan.model.multi_latent_attention;
}

bool has_experts(const ShardContext& context, const LayerNumber& number) {
  return context.plan.model.has_experts_in(number.of_model);
}

/// TransformerEngine's first layer of a dense MLP has the norm before it, too.
bool norm_in_mlp(const ShardContext& context, const LayerNumber& number) {
  return context.transformer_engine() && !has_experts(context, number);
}

bool recomputes(const ShardContext& context, estimator::RecomputeModule module) {
  return estimator::recomputes(context.plan, module);
}

/// None if attention reads the layer's input as it is.
std::optional<Norm> make_attention_norm(ShardContext& context,
                                        ParameterStore& store,
                                        const std::string& name) {
  const bool comes_after = norm_in_projection(context) || context.framework().norms_last;
  if (comes_after) store.mark_place();
  std::optional<Norm> norm;
  if (context.plan.model.has_norms_before()) norm.emplace(context, store, name);
  if (norm && norm_in_projection(context)) norm->belongs_to_linear();
  if (!comes_after) store.mark_place();
  return norm;
}

std::unique_ptr<const Attention> make_attention(ShardContext& context,
                                                ParameterStore& store,
                                                const std::string& name,
                                                int64_t number,
                                                const SharedParts& shared) {
  if (context.plan.model.multi_latent_attention) {
    return std::make_unique<const LatentAttention>(context, store, name, shared.core);
  }
  const estimator::ModelConfig& model = context.plan.model;
  const bool in_window = model.has_window_in(number);
  const auto core = in_window && shared.core_in_window ? shared.core_in_window : shared.core;
  auto rotary = in_window && shared.rotary_in_window ? shared.rotary_in_window : shared.rotary;
  if (!model.has_rope_in(number)) rotary = nullptr;
  return std::make_unique<const SelfAttention>(context, store, name, core, rotary);
}

/// Before the MLP; none if it reads what the norm before attention gives, or what attention leaves.
std::optional<Norm> make_mlp_norm(ShardContext& context,
                                  ParameterStore& store,
                                  const std::string& name,
                                  const LayerNumber& number) {
  const estimator::ModelConfig& model = context.plan.model;
  if (model.tied_layernorm || !model.has_norms_before()) return std::nullopt;
  Norm norm(context, store, name);
  if (norm_in_mlp(context, number)) norm.belongs_to_linear();
  return norm;
}

std::optional<Norm> make_norm_after(ShardContext& context,
                                    ParameterStore& store,
                                    const std::string& name) {
  if (!context.plan.model.has_norms_after()) return std::nullopt;
  return Norm(context, store, name);
}

}  // namespace

CheckpointOptions layer_checkpoint(const ShardContext& context) {
  // create_selective_checkpoint_contexts, which keeps outputs, takes no reentrant checkpoint.
  return {.keeper = context.keeper,
          .holds_output = !context.framework().selective_by_operator,
          .dividing =
              context.plan.training.distribute_saved_activations ? context.groups.tensor : nullptr,
          .scales = context.delayed_scales};
}

TransformerLayer::TransformerLayer(ShardContext& context,
                                   ParameterStore& store,
                                   std::string name,
                                   const LayerNumber& number,
                                   const SharedParts& shared)
    : context_(context),
      name_(std::move(name)),
      recomputed_(estimator::recomputed(context.plan, number)),
      norm_in_projection_(norm_in_projection(context)),
      recomputes_attention_norm_(recomputes(context, kNorms) && !norm_in_projection_),
      recomputes_mlp_norm_(recomputes(context, kNorms) && !norm_in_mlp(context, number)),
      recomputes_mlp_(recomputes(context, has_experts(context, number) ? kMoe : kMlp)),
      norm_in_mlp_(norm_in_mlp(context, number)),
      has_experts_(has_experts(context, number)),
      rotary_(shared.rotary),
      attention_norm_(make_attention_norm(context, store, name_ + ".input_layernorm")),
      attention_(
          make_attention(context, store, name_ + ".self_attention", number.of_model, shared)),
      core_scales_(std::make_unique<ScaledModule>(context.delayed_scales, kProductsOfCore)),
      mlp_norm_(make_mlp_norm(context, store, name_ + ".pre_mlp_layernorm", number)),
      mlp_(make_feed_forward(context, store, name_ + ".mlp", number.of_model, shared)),
      after_attention_(make_norm_after(context, store, name_ + ".post_self_attn_layernorm")),
      after_mlp_(make_norm_after(context, store, name_ + ".post_mlp_layernorm")) {}

bool TransformerLayer::is_checkpoint() const {
  using enum estimator::Recomputed;
  return recomputed_ == kLayer || recomputed_ == kUnlistedOperators;
}

/// The last operators keep nothing, so that their backward comes before the recomputation.
at::Tensor TransformerLayer::recomputed_late(const variable_list& inputs) const {
  const auto segment = [this](const variable_list& from) {
    const ModuleScope scope(context_.observer, name_);
    if (from.size() > 1) rotary_->take_argument(from[1]);
    const at::Tensor hidden = with_attention(from[0]);
    const auto rest = [&](const at::Tensor& begun) {
      if (c10::GradMode::is_enabled()) mlp_->finish(begun);  // a recomputation runs to its end
    };
    const at::Tensor normal = normalized(*mlp_norm_, kMlpNorm, hidden);
    const at::Tensor begun = mlp_->begin(normal, rest);
    if (from.size() > 1) rotary_->take_argument({});
    return variable_list{hidden, begun};
  };
  const variable_list parts =
      checkpoint(Segments(segment), inputs, context_.observer, layer_checkpoint(context_));
  const ModuleScope scope(context_.observer, name_);
  return finish(parts[0], parts[1]);
}

at::Tensor TransformerLayer::finish(const at::Tensor& hidden, const at::Tensor& begun) const {
  return added(mlp_->finish(begun), mlp_->bias(), after_mlp_, kAfterMlp, hidden);
}

at::Tensor TransformerLayer::forward(const at::Tensor& input, const UnitRunner& unit) const {
  const auto segment = [this, unit](const variable_list& inputs) {
    const ModuleScope scope(context_.observer, name_);
    const auto body = [this](const at::Tensor& hidden) { return compute(hidden); };
    if (inputs.size() > 1) rotary_->take_argument(inputs[1]);
    at::Tensor output = unit ? unit(inputs[0], body) : body(inputs[0]);
    if (inputs.size() > 1) rotary_->take_argument({});
    return output;
  };
  variable_list inputs = {input};
  const at::Tensor positions = rotary_ ? rotary_->argument_of_layer() : at::Tensor();
  if (positions.defined()) inputs.push_back(positions);
  if (!is_checkpoint()) return segment(inputs);
  if (context_.recomputes_late()) return recomputed_late(inputs);
  return checkpoint(segment, inputs, context_.observer, layer_checkpoint(context_));
}

at::Tensor TransformerLayer::compute(const at::Tensor& input) const {
  return as_python(context_.python_of_engine("TransformerLayer"), [&] {
    return context_.plan.model.parallel_residual ? in_parallel(input) : in_turn(input);
  });
}

BiasDropoutAdd TransformerLayer::bias_dropout() const {
  const bool fused = context_.plan.training.bias_dropout_fusion;
  return {.probability = context_.plan.model.hidden_dropout,
          .fused = fused && context_.framework().megatron_fusions,
          .compiled = fused && context_.framework().compiled_functions,
          .computes = context_.device_computes,
          .buffers = context_.buffers};
}

at::Tensor TransformerLayer::normalized(const Norm& norm,
                                        const char* name,
                                        const at::Tensor& input) const {
  ModuleScope scope(context_.observer, name);
  return norm.forward(input);
}

/// GPT-NeoX adds the whole bias on each tensor rank, so that the sum has it once for each. Where
/// values are computed the sum has it once, as on one rank.
at::Tensor TransformerLayer::before_sum(const at::Tensor& bias) const {
  const Group& group = context_.groups.tensor;
  if (!group || !bias.defined() || !context_.device_computes) return bias;
  return ShareOfBias::apply(bias, group->size());
}

/// ParallelTransformerLayer with gpt_j_residual (megatron/model/transformer.py of GPT-NeoX).
at::Tensor TransformerLayer::in_parallel(const at::Tensor& input) const {
  const BiasDropoutAdd add = bias_dropout();
  const at::Tensor for_attention = normalized(*attention_norm_, kAttentionNorm, input);
  const at::Tensor for_mlp = mlp_norm_ ? normalized(*mlp_norm_, kMlpNorm, input) : for_attention;
  const at::Tensor attended = bias_dropout_add(
      attention_->forward(for_attention), before_sum(attention_->bias()), at::Tensor(), add);
  at::Tensor both =
      bias_dropout_add(mlp_->forward(for_mlp), before_sum(mlp_->bias()), attended, add);
  if (const Group& group = context_.groups.tensor) {
    both = context_.sequence_parallel() ? reduce_scatter_to_sequence(both, group)
                                        : reduce_from_ranks(both, group);
  }
  return input + both;
}

at::Tensor TransformerLayer::in_turn(const at::Tensor& input) const {
  return with_mlp(with_attention(input));
}

/// A linear layer lets go of what the norm inside of it gave.
at::Tensor TransformerLayer::given_to(bool has_norm, NormOutput& normal) {
  return has_norm ? std::exchange(normal.value, {}) : normal.value;
}

at::Tensor TransformerLayer::with_attention(const at::Tensor& given) const {
  const at::Tensor input = context_.graphs->begin(GraphModule::kAttention, has_experts_, given);
  NormOutput normal =
      norm_output(attention_norm_, kAttentionNorm, input, recomputes_attention_norm_);
  core_scales_->begin();
  const at::Tensor attended = attention_->forward(given_to(norm_in_projection_, normal));
  core_scales_->end();
  normal.was_read_for(attended);
  const at::Tensor output =
      added(attended, attention_->bias(), after_attention_, kAfterAttention, input);
  return context_.graphs->end(GraphModule::kAttention, has_experts_, {output})[0];
}

at::Tensor TransformerLayer::added(const at::Tensor& output,
                                   const at::Tensor& bias,
                                   const std::optional<Norm>& after,
                                   const char* name,
                                   const at::Tensor& input) const {
  if (!after) return bias_dropout_add(output, bias, input, bias_dropout());
  const at::Tensor normal = normalized(*after, name, bias.defined() ? output + bias : output);
  return bias_dropout_add(normal, at::Tensor(), input, bias_dropout());
}

at::Tensor TransformerLayer::with_mlp(const at::Tensor& given) const {
  const at::Tensor input = context_.graphs->begin(GraphModule::kMlp, has_experts_, given);
  const auto run = [this](const variable_list& inputs) { return mlp_->forward(inputs[0]); };
  const auto run_with_norm = [this](const variable_list& inputs) {
    return mlp_->forward(normalized(*mlp_norm_, kMlpNorm, inputs[0]));
  };
  const auto add = [&](const at::Tensor& output) {
    const at::Tensor sum = added(output, mlp_->bias(), after_mlp_, kAfterMlp, input);
    const GraphModule last = has_experts_ ? GraphModule::kMoe : GraphModule::kMlp;
    return context_.graphs->end(last, has_experts_, {sum})[0];
  };
  const CheckpointOptions again{.scales = context_.delayed_scales};
  if (recomputes_mlp_ && norm_in_mlp_) {
    return add(checkpoint(run_with_norm, {input}, context_.observer, again));
  }
  NormOutput normal = norm_output(mlp_norm_, kMlpNorm, input, recomputes_mlp_norm_);
  const at::Tensor output = recomputes_mlp_
                                ? checkpoint(run, {normal.value}, context_.observer, again)
                                : mlp_->forward(given_to(norm_in_mlp_, normal));
  normal.was_read_for(output);
  return add(output);
}

/// Of a layer that has experts.
const ExpertMlp& experts_of(const FeedForward& mlp) { return static_cast<const ExpertMlp&>(mlp); }

TransformerLayer::Routed TransformerLayer::route(const at::Tensor& hidden) const {
  Routed routed;
  routed.hidden = context_.graphs->begin(GraphModule::kMlp, has_experts_, hidden);
  routed.normal = norm_output(mlp_norm_, kMlpNorm, routed.hidden, recomputes_mlp_norm_);
  const ModuleScope scope(context_.observer, "mlp");
  ExpertMlp::Prepared prepared =
      experts_of(*mlp_).begin_tokens(std::exchange(routed.normal.value, {}));
  routed.tokens = std::move(prepared.tokens);
  routed.shared = std::move(prepared.shared);
  return routed;
}

DispatchedTokens TransformerLayer::send(DispatchedTokens prepared) const {
  const ModuleScope scope(context_.observer, "mlp");
  return experts_of(*mlp_).send_tokens(std::move(prepared));
}

at::Tensor TransformerLayer::run_experts(Routed& routed) const {
  const ModuleScope scope(context_.observer, "mlp");
  at::Tensor rows = experts_of(*mlp_).run_tokens(routed.tokens);
  routed.normal.was_read_for(rows);
  return rows;
}

at::Tensor TransformerLayer::combine(at::Tensor rows, const Routed& routed) const {
  at::Tensor output;
  {
    const ModuleScope scope(context_.observer, "mlp");
    output = experts_of(*mlp_).end_tokens(
        std::move(rows), routed.tokens, routed.shared, routed.hidden.sizes());
  }
  return added(output, at::Tensor(), after_mlp_, kAfterMlp, routed.hidden);
}

TransformerLayer::NormOutput TransformerLayer::norm_output(const std::optional<Norm>& norm,
                                                           const char* name,
                                                           const at::Tensor& input,
                                                           bool recompute) const {
  if (!norm) return {.value = input, .discarded = std::nullopt};
  if (!recompute) return {.value = normalized(*norm, name, input), .discarded = std::nullopt};
  const auto segment = [this, &norm, name](const variable_list& inputs) {
    return variable_list{normalized(*norm, name, inputs[0])};
  };
  NormOutput output{.value = at::Tensor(), .discarded = DiscardedOutputs()};
  output.value = output.discarded->run(segment, {input}, context_.observer)[0];
  return output;
}

void TransformerLayer::NormOutput::was_read_for(const at::Tensor& output) const {
  if (discarded) discarded->discard(output);
}

}  // namespace models
