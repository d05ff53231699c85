#include "tests/models/small_shards.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>

#include <thread>

#include "estimator/plan/parallel_layout.h"
#include "estimator/resolve/resolve_plan.h"

namespace models {

using estimator::Json;

estimator::Plan small_plan(const Json& changes) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 64,
              "max_position_embeddings": 16, "hidden_dropout": 0, "attention_dropout": 0,
              "tie_embeddings": true},
    "cluster": {"gpu": "a100", "nodes": 1, "gpus_per_node": 1},
    "training": {"micro_batch_size": 2, "global_batch_size": 4, "sequence_length": 16,
                 "dtype": "fp32", "attention": "unfused", "make_vocab_size_divisible_by": 1}})");
  tree.merge_patch(changes);
  return estimator::resolve_plan(tree, {});
}

Json llama_changes() {
  return Json::parse(R"({"model": {"num_query_groups": 2, "ffn_hidden_size": 48,
    "normalization": "RMSNorm", "activation": "swiglu", "position_embedding": "rope",
    "add_bias_linear": false, "tie_embeddings": false}})");
}

Json latent_changes() {
  Json changes = llama_changes();
  changes["model"].merge_patch(Json::parse(R"({"num_query_groups": 4,
    "multi_latent_attention": true, "q_lora_rank": 12, "kv_lora_rank": 16, "qk_head_dim": 8,
    "qk_pos_emb_head_dim": 4, "v_head_dim": 6, "qk_layernorm": true})"));
  return changes;
}

Json gpt_oss_changes() {
  Json changes = llama_changes();
  changes.merge_patch(Json::parse(R"({
    "model": {"add_bias_linear": true, "activation": "quick_geglu", "activation_func_clamp_value": 0.02,
              "glu_linear_offset": 1, "softmax_type": "learnable", "sliding_window": 4,
              "window_attn_skip_freq": [2], "num_experts": 4, "moe_ffn_hidden_size": 24},
    "training": {"dtype": "bf16", "attention": "fused"}})"));
  return changes;
}

estimator::Plan exact_plan(Json changes) {
  changes["training"]["dtype"] = "bf16";
  estimator::Plan plan = small_plan(changes);
  plan.training.dtype = estimator::Dtype::kFp32;
  return plan;
}

Iteration run_iteration(const estimator::Plan& plan) {
  SilentObserver observer;
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(7);  // of dropout
  const auto trainer = built_trainer(plan, {}, {}, observer);
  trainer->forward_backward(0);
  return {.loss = trainer->loss(), .gradients = gradients_of(*trainer)};
}

std::unique_ptr<Trainer> built_trainer(const estimator::Plan& plan,
                                       const estimator::RankCoordinate& coordinate,
                                       ProcessGroups groups,
                                       Observer& observer) {
  auto trainer = std::make_unique<Trainer>(ShardContext{.plan = plan,
                                                        .coordinate = coordinate,
                                                        .groups = std::move(groups),
                                                        .device = at::Device(at::kCPU),
                                                        .observer = observer},
                                           plan.micro_batches(),
                                           default_optimizer(plan));
  trainer->build_model();
  return trainer;
}

void run_side_by_side(const std::vector<std::unique_ptr<Trainer>>& ranks) {
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) threads.emplace_back([&rank] { rank->forward_backward(0); });
  for (std::thread& thread : threads) thread.join();
}

std::map<std::string, at::Tensor> gradients_of(const Trainer& trainer) {
  std::map<std::string, at::Tensor> gradients;
  for (const OwnedPiece& piece : trainer.data_parallel().owned_pieces()) {
    gradients[piece.parameter->name] = piece.gradients.view(piece.parameter->value.sizes()).clone();
  }
  return gradients;
}

double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  const double scale = expected.norm().item().toDouble();
  return (actual - expected).norm().item().toDouble() / (scale > 0 ? scale : 1.0);
}

ShardContext meta_context(const estimator::Plan& plan, int64_t rank, Observer& observer) {
  return {.plan = plan,
          .coordinate = estimator::ParallelLayout(plan.parallelism).coordinate(rank),
          .groups = {},
          .device = at::Device(at::kMeta),
          .observer = observer};
}

}  // namespace models
