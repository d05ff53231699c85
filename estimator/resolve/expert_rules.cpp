#include "estimator/plan/layer_parameters.h"
#include "estimator/resolve/subject_rules.h"

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/model_options.h"

namespace estimator {
namespace {

/// Keys of experts mean nothing without them.
void check_dense(Rules& rules) {
  const Plan& plan = rules.plan();
  const auto unused = [&](bool is_default, const std::string& where) {
    rules.require(is_default,
                  "the key is only for models with experts",
                  where + " without model.num_experts",
                  "give --num-experts, or leave it out");
  };
  unused(plan.parallelism.expert == 1,
         fmt::format("parallelism.expert = {}", plan.parallelism.expert));
  unused(plan.expert_tensor_size() == 1,
         fmt::format("parallelism.expert_tensor = {}", plan.expert_tensor_size()));
  const Json given = to_json(plan.model), usual = to_json(ModelConfig());
  for (const auto& [key, value] : given.items()) {
    if (!key.starts_with("moe_")) continue;
    unused(value == usual.at(key), fmt::format("model.{} = {}", key, value.dump()));
  }
  unused(!plan.model.moe_apply_probs_on_input, "model.moe_apply_probs_on_input");
  unused(!plan.training.moe_expert_capacity_factor, "training.moe_expert_capacity_factor");
  unused(!plan.training.moe_pad_expert_input_to_capacity,
         "training.moe_pad_expert_input_to_capacity");
  unused(plan.training.moe_router_dtype == RouterDtype::kOfTokens,
         fmt::format("training.moe_router_dtype = {}", to_string(plan.training.moe_router_dtype)));
  unused(!plan.training.moe_router_fusion, "training.moe_router_fusion");
  unused(plan.training.moe_grouped_gemm, "training.moe_grouped_gemm = false");
}

void check_model(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  rules.require(
      m.moe_router_topk <= m.num_experts,
      "a token goes to more experts than there are",
      fmt::format("model.moe_router_topk = {}, num_experts = {}", m.moe_router_topk, m.num_experts),
      fmt::format("use at most {}", m.num_experts));
  const int64_t groups = m.moe_router_num_groups;
  const bool has_groups = groups != 0 || m.moe_router_group_topk != 0;
  rules.require(
      !has_groups ||
          (groups > 0 && m.num_experts % groups == 0 && m.moe_router_group_topk >= 1 &&
           m.moe_router_group_topk <= groups && m.moe_router_topk >= m.moe_router_group_topk &&
           m.moe_router_topk / m.moe_router_group_topk <= m.num_experts / groups),
      "the router's groups do not fit the experts",
      fmt::format("model.moe_router_num_groups = {}, moe_router_group_topk = {}, "
                  "moe_router_topk = {}, num_experts = {}",
                  groups,
                  m.moe_router_group_topk,
                  m.moe_router_topk,
                  m.num_experts),
      "give both: groups that divide the experts, and how many of them a token uses");
  rules.require(
      m.moe_aux_loss_coeff == 0 || m.moe_router_load_balancing_type != LoadBalancing::kSinkhorn,
      "Sinkhorn's balancing has no auxiliary loss",
      fmt::format("model.moe_router_load_balancing_type = sinkhorn, moe_aux_loss_coeff = {}",
                  m.moe_aux_loss_coeff),
      "use --moe-aux-loss-coeff 0");
  const auto& freq = m.moe_layer_freq;
  const bool is_every = freq.size() == 1 && freq.front() >= 1;
  const bool is_pattern =
      static_cast<int64_t>(freq.size()) == m.num_layers &&
      std::all_of(freq.begin(), freq.end(), [](int64_t layer) { return layer == 0 || layer == 1; });
  rules.require(
      is_every || is_pattern,
      "which layers have experts is not clear",
      fmt::format(
          "model.moe_layer_freq has {} numbers, num_layers = {}", freq.size(), m.num_layers),
      "give one number n for each n-th layer, or a 0 or a 1 for each layer");
}

/// "Bias in Moe is only supported when ETP==1" (__post_init__ in
/// megatron/core/transformer/transformer_config.py); SharedExpertMLP has none.
void check_biases(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!plan.model.has_mlp_bias()) return;
  const auto require = [&](bool holds, const std::string& where, const char* help) {
    rules.require(holds,
                  "experts with biases are not supported here",
                  "model.add_bias_linear with model.num_experts, " + where,
                  help);
  };
  require(!traits_of(t.framework).stacked_experts && t.moe_grouped_gemm,
          fmt::format("training.framework = {}, moe_grouped_gemm = {}",
                      to_string(t.framework),
                      t.moe_grouped_gemm),
          "use --framework megatron-lm with --moe-grouped-gemm, or add --disable-bias-linear");
  require(plan.expert_tensor_size() == 1,
          fmt::format("parallelism.expert_tensor = {}", plan.expert_tensor_size()),
          "use --expert-tensor-parallel-size 1");
  require(plan.model.moe_shared_expert_intermediate_size == 0,
          fmt::format("model.moe_shared_expert_intermediate_size = {}",
                      plan.model.moe_shared_expert_intermediate_size),
          "add --disable-bias-linear");
}

/// RankGenerator's use in megatron/core/parallel_state.py asks for it.
void check_rank_order(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const int64_t experts = ranks_of_experts(rules.plan());
  rules.require(!p.use_tp_pp_dp_mapping || p.pipeline == 1 || experts == p.tensor * p.context,
                "with stages inside of data ranks experts must have as many replicas as all else",
                fmt::format("parallelism.use_tp_pp_dp_mapping, expert {} x expert_tensor {} = {}, "
                            "tensor {} x context {} = {}",
                            p.expert,
                            rules.plan().expert_tensor_size(),
                            experts,
                            p.tensor,
                            p.context,
                            p.tensor * p.context),
                "leave out --use-tp-pp-dp-mapping");
}

constexpr const char* kExpert = "parallelism.expert";
constexpr const char* kExpertSizes = "an expert parallel size of {}";
constexpr const char* kExpertTensor = "parallelism.expert_tensor";
constexpr const char* kExpertTensorSizes = "--expert-tensor-parallel-size {}";

void check_split(Rules& rules) {
  const Plan& plan = rules.plan();
  const ModelConfig& m = plan.model;
  const ParallelConfig& p = plan.parallelism;
  const int64_t expert_tensor = plan.expert_tensor_size();
  rules.require(
      m.num_experts % p.expert == 0,
      "the experts do not divide among the expert ranks",
      fmt::format("model.num_experts = {}, parallelism.expert = {}", m.num_experts, p.expert),
      "use an expert parallel size that divides the experts",
      {{kExpertSizes, kExpert, divisors_near(m.num_experts, p.expert)}});
  rules.require(
      m.moe_ffn_hidden_size % expert_tensor == 0,
      "an expert's columns do not divide by the experts' tensor parallel size",
      fmt::format("model.moe_ffn_hidden_size = {}, parallelism.expert_tensor = {}",
                  m.moe_ffn_hidden_size,
                  expert_tensor),
      "use --expert-tensor-parallel-size 1",
      {{kExpertTensorSizes, kExpertTensor, divisors_near(m.moe_ffn_hidden_size, expert_tensor)}});
  rules.require(m.moe_shared_expert_intermediate_size % p.tensor == 0,
                "the shared experts' columns do not divide by the tensor parallel size",
                fmt::format("model.moe_shared_expert_intermediate_size = {}, "
                            "parallelism.tensor = {}",
                            m.moe_shared_expert_intermediate_size,
                            p.tensor),
                "use another tensor parallel size",
                {{"a tensor parallel size of {}",
                  "parallelism.tensor",
                  divisors_near(m.moe_shared_expert_intermediate_size, p.tensor)}});
  if (!p.data.is_known()) return;
  const int64_t ranks = p.tensor * plan.replicas();
  rules.require(ranks % (expert_tensor * p.expert) == 0,
                "the experts do not divide among the ranks of a stage",
                fmt::format("parallelism: expert {} x expert_tensor {}, of tensor {} x context {} "
                            "x data {} = {} ranks",
                            p.expert,
                            expert_tensor,
                            p.tensor,
                            p.context,
                            p.data,
                            ranks),
                "use an expert parallel size that divides these ranks",
                {{kExpertTensorSizes, kExpertTensor, {1}},
                 {kExpertSizes,
                  kExpert,
                  divisors_near(std::max<int64_t>(1, ranks / expert_tensor), p.expert)}});
  // megatron/training/arguments.py: "When using MoE and tensor parallelism, sequence parallelism
  // must be used".
  rules.require(p.tensor == 1 || p.sequence_parallel,
                "experts with tensor parallelism need sequence parallelism",
                fmt::format("parallelism.tensor = {} without sequence_parallel", p.tensor),
                "add --sequence-parallel");
}

/// Ranks that cut the same experts gather their tokens, of which each must have as many.
void check_gathered_tokens(Rules& rules) {
  const Plan& plan = rules.plan();
  if (plan.expert_tensor_size() == 1 || plan.training.moe_pad_expert_input_to_capacity) return;
  if (!plan.training.sequence_length.is_known()) return;
  const int64_t rows = plan.local_sequence() * plan.model.moe_router_topk;
  rules.require(rows % plan.model.num_experts == 0,
                "the tokens of a rank do not divide evenly among the experts, as expert tensor "
                "parallelism needs here",
                fmt::format("{} rows of a sequence on a rank x model.moe_router_topk {} = {}, "
                            "model.num_experts = {}",
                            plan.local_sequence(),
                            plan.model.moe_router_topk,
                            rows,
                            plan.model.num_experts),
                "use --expert-tensor-parallel-size 1, or a longer sequence");
}

bool drops_tokens(const TrainingConfig& training) {
  using enum TokenDispatcher;
  return training.moe_token_dispatcher_type == kAllToAll ||
         (training.moe_token_dispatcher_type == kFlex &&
          training.moe_flex_dispatcher_backend == FlexBackend::kHybridEp);
}

/// What MoEFlexTokenDispatcher in megatron/core/transformer/moe/token_dispatcher.py and its
/// libraries need. DeepEP's kernels are built for Ampere, too.
void check_flex_dispatcher(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (t.moe_token_dispatcher_type != TokenDispatcher::kFlex) return;
  const std::string named =
      fmt::format("training.moe_token_dispatcher_type = flex, moe_flex_dispatcher_backend = {}",
                  to_string(t.moe_flex_dispatcher_backend));
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds, what, named + where, help);
      };
  require(t.framework == Framework::kMegatronLm,
          "the dispatcher flex is Megatron-LM's",
          fmt::format(", training.framework = {}", to_string(t.framework)),
          "use --moe-token-dispatcher-type alltoall");
  require(plan.parallelism.expert > 1,
          "the dispatcher flex needs several expert ranks",
          ", parallelism.expert = 1",
          "use --moe-token-dispatcher-type alltoall");
  require(plan.expert_tensor_size() == 1,
          "the dispatcher flex is supported only with whole experts yet",
          fmt::format(", parallelism.expert_tensor = {}", plan.expert_tensor_size()),
          "use --expert-tensor-parallel-size 1");
  const Gpu* gpu = find_gpu(plan.cluster.gpu);
  require(gpu == nullptr || gpu->capability() >= kHopper,
          "rates of DeepEP and HybridEP are known from Hopper on",
          ", cluster.gpu = " + plan.cluster.gpu,
          "use --moe-token-dispatcher-type alltoall");
}

void check_training(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  rules.require(traits_of(t.framework).experts,
                "mixtures of experts are not supported for this framework",
                fmt::format("model.num_experts = {}, training.framework = {}",
                            plan.model.num_experts,
                            to_string(t.framework)),
                "use training.framework = megatron-lm, torchtitan or plain");
  rules.require(t.transformer_impl == TransformerImpl::kTransformerEngine || !t.moe_grouped_gemm,
                "the products of several experts are issued together only by TransformerEngine",
                fmt::format("training.moe_grouped_gemm with training.transformer_impl = {}",
                            to_string(t.transformer_impl)),
                "use training.transformer_impl = transformer_engine, or add --no-moe-grouped-gemm");
  rules.require(!t.moe_router_fusion || t.transformer_impl == TransformerImpl::kTransformerEngine,
                "the router's fused kernels are TransformerEngine's",
                fmt::format("training.moe_router_fusion with training.transformer_impl = {}",
                            to_string(t.transformer_impl)),
                "use training.transformer_impl = transformer_engine, or leave the key out");
  rules.require(!plan.fully_sharded() || traits_of(t.framework).stacked_experts,
                "mixtures of experts under FSDP2 are not supported yet",
                fmt::format("parallelism.zero_stage = {}", plan.parallelism.zero_stage.value()),
                "use --framework torchtitan, or ZeRO stage 1");
  rules.require(!t.optimizer_cpu_offload,
                "optimizer offload with experts is not supported yet",
                "training.optimizer_cpu_offload with model.num_experts",
                "leave the optimizer on the GPU");
  // validate_args in megatron/training/arguments.py and __post_init__ in
  // megatron/core/transformer/transformer_config.py.
  rules.require(
      drops_tokens(t) || (!t.moe_expert_capacity_factor && !t.moe_pad_expert_input_to_capacity),
      "only alltoall and HybridEP drop tokens or pad experts to their capacity",
      fmt::format("training.moe_token_dispatcher_type = {}",
                  to_string(t.moe_token_dispatcher_type)),
      "use --moe-token-dispatcher-type alltoall");
  const double capacity = t.moe_expert_capacity_factor.value_or(1);
  rules.require(capacity > 0,
                "a capacity factor is not positive",
                fmt::format("training.moe_expert_capacity_factor = {}", capacity),
                "use 1 for as many tokens as there are in the mean");
  rules.require(t.moe_expert_capacity_factor.has_value() || !t.moe_pad_expert_input_to_capacity,
                "the capacity to which experts are padded is not given",
                "training.moe_pad_expert_input_to_capacity without moe_expert_capacity_factor",
                "add --moe-expert-capacity-factor 1");
  rules.require(!t.moe_expert_capacity_factor || t.moe_pad_expert_input_to_capacity,
                "experts that drop tokens without padding to their capacity are not supported, "
                "because the number of dropped tokens depends on the data",
                fmt::format("training.moe_expert_capacity_factor = {}", capacity),
                "add --moe-pad-expert-input-to-capacity, or leave the factor out");
}

/// What is built of TorchTitan's layouts.
void check_stacked_layout(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  rules.require(rules.plan().fully_sharded(),
                "TorchTitan's experts are supported only with FSDP2 yet",
                fmt::format("parallelism.zero_stage = {}", p.zero_stage.value()),
                "use ZeRO stage 3");
  // apply_fsdp in torchtitan/models/llama4/infra/parallelize.py of v0.2.2 then cuts the experts'
  // second dimension.
  const int64_t ranks = p.data.value_or(1) * p.context / p.num_distributed_optimizer_instances;
  rules.require(p.expert == 1 || ranks <= rules.plan().model.num_experts,
                "FSDP2 of experts over more ranks than there are experts is not supported with "
                "expert parallelism yet",
                fmt::format("parallelism.expert = {}, {} ranks, model.num_experts = {}",
                            p.expert,
                            ranks,
                            rules.plan().model.num_experts),
                "use an expert parallel size of 1, or fewer ranks");
  rules.require(p.tensor == 1,
                "TorchTitan's experts do not work with tensor parallelism yet",
                fmt::format("parallelism.tensor = {}", p.tensor),
                "use a tensor parallel size of 1, or --framework megatron-lm");
}

/// MoEArgs in torchtitan/models/moe/moe.py of v0.2.2 has none of these.
void check_stacked_router(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  const TrainingConfig& t = rules.plan().training;
  const bool drops = t.moe_expert_capacity_factor || t.moe_pad_expert_input_to_capacity;
  rules.require(m.moe_router_load_balancing_type != LoadBalancing::kSinkhorn &&
                    m.moe_aux_loss_coeff == 0 && !drops &&
                    t.moe_router_dtype == RouterDtype::kOfTokens,
                "TorchTitan's router has no balancing loss, no capacity and no type of its own",
                fmt::format("model.moe_router_load_balancing_type = {}, moe_aux_loss_coeff = {}, "
                            "training.moe_expert_capacity_factor = {}, moe_router_dtype = {}",
                            to_string(m.moe_router_load_balancing_type),
                            m.moe_aux_loss_coeff,
                            t.moe_expert_capacity_factor.value_or(0),
                            to_string(t.moe_router_dtype)),
                "leave them out, or use --framework megatron-lm");
}

/// torch._grouped_mm asks for strides of a multiple of 16 bytes
/// (check_valid_strides_and_return_transposed in ATen/native/GroupedMMUtils.h of PyTorch 2.11).
/// TorchTitan runs expert by expert on older GPUs (has_cuda_capability in
/// torchtitan/models/llama4/model/args.py).
void check_stacked_products(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  constexpr int64_t kMultiple = 8;
  rules.require(
      m.hidden_size % kMultiple == 0 && m.moe_ffn_hidden_size % kMultiple == 0,
      "grouped products need widths that are multiples of 8",
      fmt::format(
          "model.hidden_size = {}, moe_ffn_hidden_size = {}", m.hidden_size, m.moe_ffn_hidden_size),
      "use such widths");
  rules.require(is_gated(m.activation),
                "TorchTitan's experts have a gate",
                fmt::format("model.activation = {}", to_string(m.activation)),
                "use --swiglu");
  constexpr double kFirstWithGroups = 9;  // Hopper
  const Gpu* gpu = find_gpu(rules.plan().cluster.gpu);
  rules.require(gpu == nullptr || gpu->capability() >= kFirstWithGroups,
                "TorchTitan's grouped products need a Hopper GPU or newer; its loop over experts "
                "is not built",
                fmt::format("cluster.gpu = {}", rules.plan().cluster.gpu),
                "use another GPU");
}

void check_stacked_experts(Rules& rules) {
  const Framework framework = rules.plan().training.framework;
  if (!traits_of(framework).stacked_experts) {
    rules.require(!rules.plan().model.moe_apply_probs_on_input,
                  "weights on the experts' inputs are supported only in TorchTitan's experts",
                  fmt::format("model.moe_apply_probs_on_input, training.framework = {}",
                              to_string(framework)),
                  "use --framework torchtitan, or leave the key out");
    return;
  }
  check_stacked_layout(rules);
  check_stacked_router(rules);
  check_stacked_products(rules);
}

}  // namespace

void check_experts(Rules& rules) {
  if (!rules.plan().model.has_experts()) return check_dense(rules);
  check_model(rules);
  check_biases(rules);
  check_split(rules);
  check_rank_order(rules);
  check_gathered_tokens(rules);
  check_training(rules);
  check_flex_dispatcher(rules);
  check_stacked_experts(rules);
}

}  // namespace estimator
