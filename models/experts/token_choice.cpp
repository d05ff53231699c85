#include "models/experts/token_choice.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/index.h>
#include <ATen/ops/item.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <limits>

#include "models/data_parallel/fully_sharded.h"

namespace models {

using estimator::RouterScore;

namespace {

bool is_sigmoid(const estimator::ModelConfig& model) {
  return model.moe_router_score_function == RouterScore::kSigmoid;
}

/// MoEArgs.route_norm. Megatron-LM's softmax of the chosen scores alone gives the same weights.
bool is_normalized(const estimator::ModelConfig& model) {
  return is_sigmoid(model) ? model.moe_router_topk > 1 : !model.moe_router_pre_softmax;
}

ParameterSpec gate_spec(const estimator::ModelConfig& model, const std::string& name) {
  return {.name = name + ".router.weight", .full_shape = {model.num_experts, model.hidden_size}};
}

/// Begins the unit of a layer's experts, if they are one, and later goes on with the layer's.
class ExpertUnit {
 public:
  ExpertUnit(const ShardContext& context, ParameterStore& store)
      : store_(store), of_layer_(store.unit()) {
    if (context.experts_are_unit()) store.begin_unit();
  }
  ~ExpertUnit() { store_.go_on_with_unit(of_layer_); }
  ExpertUnit(const ExpertUnit&) = delete;
  ExpertUnit& operator=(const ExpertUnit&) = delete;

 private:
  ParameterStore& store_;
  int64_t of_layer_;
};

StackedExperts experts_in_unit(ShardContext& context,
                               ParameterStore& store,
                               const std::string& name,
                               const std::vector<int64_t>& rows_of,
                               int64_t& unit) {
  const ExpertUnit scope(context, store);
  unit = store.unit();
  return {context, store, name, rows_of};
}

}  // namespace

TokenChoiceMlp::TokenChoiceMlp(ShardContext& context,
                               ParameterStore& store,
                               const std::string& name)
    : context_(context),
      chunk_(store.chunk()),
      routing_(route_in_turn(context.plan, context.coordinate)),
      arriving_(arriving_rows(context, routing_.of_expert)),
      gate_(store.add(gate_spec(context.plan.model, name))),
      experts_(experts_in_unit(context, store, name, arriving_.from_ranks, experts_unit_)) {
  arriving_.splits.is_functional = true;  // all_to_all_single_autograd
  const estimator::ModelConfig& model = context.plan.model;
  const int64_t width = model.moe_shared_expert_intermediate_size;
  if (width > 0) shared_.emplace(context, store, name + ".shared_experts", width);
  if (context.device_computes) {
    chosen_ =
        at::tensor(routing_.chosen, at::kLong).to(context.device).view({-1, model.moe_router_topk});
  }
  const at::TensorOptions options = context.options().dtype(at::kFloat);
  for (at::Tensor* buffer : {&balance_.bias, &balance_.tokens}) {
    *buffer = at::zeros({model.num_experts}, options);
    context.observer.memory_lasts(*buffer, {estimator::MemoryCategory::kWorkspace, "router", ""});
  }
}

/// Qwen3's optimizers are built without the hook that balances
/// (build_optimizers_with_moe_load_balancing in torchtitan/components/optimizer.py).
const ExpertBalance* TokenChoiceMlp::balance() const {
  return context_.torchtitan_qwen3() ? nullptr : &balance_;
}

/// _get_node_limited_routing_scores: scores outside of the groups whose two best scores add up to
/// the most count as minus infinity.
at::Tensor TokenChoiceMlp::within_groups(const at::Tensor& scores) const {
  const estimator::ModelConfig& model = context_.plan.model;
  if (model.moe_router_num_groups == 0) return scores;
  const at::Tensor by_group = scores.view({scores.size(0), model.moe_router_num_groups, -1});
  const at::Tensor of_group = std::get<0>(at::topk(by_group, 2)).sum(-1);
  const at::Tensor best = std::get<1>(
      at::topk(of_group, model.moe_router_group_topk, -1, /*largest=*/true, /*sorted=*/false));
  at::Tensor others = at::ones_like(of_group, at::kBool);
  others.scatter_(1, best, 0);
  return by_group.masked_fill(others.unsqueeze(-1), -std::numeric_limits<double>::infinity())
      .view(scores.sizes());
}

/// torch.histc, which the CPU has not for integers.
at::Tensor TokenChoiceMlp::counts_of(const at::Tensor& experts) const {
  const int64_t count = context_.plan.model.num_experts;
  const at::Tensor flat = experts.view(-1);
  return flat.is_cpu() ? at::bincount(flat, {}, count) : at::histc(flat, count, 0, count);
}

/// The product is recomputed with its layer, and is not one of those of which every second is kept
/// (per_op_sac_force_recompute_mm_shapes_by_fqns in torchtitan/config/job_config.py).
TokenChoiceMlp::Choice TokenChoiceMlp::choose(const at::Tensor& tokens) const {
  const ModuleScope scope(context_.observer, "router");
  const estimator::ModelConfig& model = context_.plan.model;
  const at::Tensor logits = at::linear(tokens, gate_.value).to(at::kFloat);
  const at::Tensor scores = is_sigmoid(model) ? at::sigmoid(logits) : at::softmax(logits, 1);
  const at::Tensor for_choice = within_groups(scores + balance_.bias);
  at::Tensor experts = std::get<1>(
      at::topk(for_choice, model.moe_router_topk, -1, /*largest=*/true, /*sorted=*/false));
  if (chosen_.defined()) experts = chosen_;  // see expert_routing.h
  at::Tensor weights = at::gather(scores, 1, experts);
  constexpr double kSmall = 1e-20;
  if (is_normalized(model)) weights = weights / (weights.sum(-1, /*keepdim=*/true) + kSmall);
  const double factor = model.moe_router_topk_scaling_factor;
  weights = weights * (factor > 0 ? factor : 1.0);
  const c10::NoGradGuard no_grad;
  balance_.tokens.add_(counts_of(experts));
  return {.weights = weights, .experts = experts};
}

TokenChoiceMlp::Order TokenChoiceMlp::sort(const Choice& choice) const {
  const ModuleScope scope(context_.observer, "dispatch");
  const at::Tensor counts = counts_of(choice.experts);
  const at::Tensor rows = at::argsort(choice.experts.view(-1), /*stable=*/true);
  return {.weights = at::index(choice.weights.view(-1), {rows}), .rows = rows, .counts = counts};
}

/// Each model has its own list of operators whose outputs are kept (_op_sac_save_list in
/// infra/parallelize.py of torchtitan/models, v0.2.2). Those of Llama 4, DeepSeek-V3 and gpt-oss
/// have all-to-alls; that of Qwen3 has not.
std::shared_ptr<OutputKeeper> TokenChoiceMlp::kept_exchanges() const {
  return context_.torchtitan_qwen3() ? nullptr : context_.keeper;
}

/// How many rows arrive from each rank for each own expert. The host waits for the sums.
at::Tensor TokenChoiceMlp::exchanged(const at::Tensor& counts) const {
  const c10::NoGradGuard no_grad;
  const Group& group = context_.groups.expert;
  const std::vector<int64_t> each(group->size(), counts.size(0) / group->size());
  at::Tensor arriving =
      all_to_all(counts,
                 {.group = group, .sent = each, .received = each, .is_functional = true},
                 kept_exchanges());
  counts.view({group->size(), -1}).sum(1).to(at::kCPU, /*non_blocking=*/true);
  arriving.view({group->size(), -1}).sum(1)[0].item();
  return arriving;
}

/// Of rows [rows, h] that lie sorted by expert.
at::Tensor TokenChoiceMlp::on_all_ranks(const at::Tensor& rows, const at::Tensor& counts) const {
  const ModuleScope scope(context_.observer, "dispatch");
  const at::Tensor arriving = exchanged(counts);
  const at::Tensor outputs =
      experts_.forward(all_to_all(rows, arriving_.splits, kept_exchanges()), arriving);
  return all_to_all(outputs, arriving_.splits.reversed(), kept_exchanges());
}

at::Tensor TokenChoiceMlp::run_experts(const at::Tensor& rows, const at::Tensor& counts) const {
  if (!context_.experts_are_unit()) return experts_.forward(rows, counts);
  return context_.fully_sharded[static_cast<std::size_t>(chunk_)]->run(
      experts_unit_, rows, [&](const at::Tensor& input) { return on_all_ranks(input, counts); });
}

/// rows [tokens, topk, h] -> [tokens, h].
at::Tensor TokenChoiceMlp::summed(const at::Tensor& rows, const at::Tensor& weights) const {
  if (context_.plan.model.moe_apply_probs_on_input) return rows.sum(1);
  return at::bmm(weights.view({-1, 1, rows.size(1)}), rows.to(at::kFloat)).squeeze(1);
}

at::Tensor TokenChoiceMlp::begin(at::Tensor input, const Rest& rest) const {
  const ModuleScope scope(context_.observer, "mlp");
  const int64_t topk = context_.plan.model.moe_router_topk;
  const at::Tensor tokens = input.view({-1, input.size(-1)});
  const Choice choice = choose(tokens);
  const Order order = sort(choice);
  at::Tensor rows = at::index(tokens, {at::floor_divide(order.rows, topk)});
  if (context_.plan.model.moe_apply_probs_on_input) {
    rows = (rows.to(at::kFloat) * order.weights.view({-1, 1})).to(tokens.scalar_type());
  }
  const at::Tensor outputs = run_experts(rows, order.counts);
  const at::Tensor shared = shared_ ? shared_->forward(input) : at::Tensor();
  const ModuleScope combine(context_.observer, "combine");
  at::Tensor unsorted = at::zeros(rows.sizes(), outputs.options().requires_grad(false));
  unsorted.index_put_({order.rows}, outputs);
  const at::Tensor combined =
      summed(unsorted.view({-1, topk, input.size(-1)}), choice.weights).view(input.sizes());
  at::Tensor output = shared.defined() ? shared + combined.to(shared.scalar_type()) : combined;
  if (rest) rest(output);
  return output;
}

at::Tensor TokenChoiceMlp::finish(const at::Tensor& begun) const {
  return begun.to(scalar_type(context_.plan.training.dtype));
}

}  // namespace models
