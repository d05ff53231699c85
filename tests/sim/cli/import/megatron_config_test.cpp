// Configurations of Megatron's core: Megatron-Bridge's, and Megatron-LM's --yaml-cfg.
#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/key_table.h"
#include "tests/sim/cli/import/technique_names.h"

namespace sim {
namespace {

using estimator::Json;

/// Of the model on two GPUs.
int64_t parameters_of(Json tree) {
  tree["cluster"] = {{"gpu", "h100"}, {"nodes", 1}, {"gpus_per_node", 2}};
  const estimator::Plan plan = estimator::resolve_plan(tree, {});
  return estimator::parameter_count(plan.model, plan.model.vocab_size);
}

/// An excerpt of what Megatron-Bridge wrote of Llama-3.2 1B.
constexpr const char* kBridge = R"(_target_: megatron.bridge.training.config.ConfigContainer
checkpoint:
  _target_: megatron.bridge.training.config.CheckpointConfig
  save_interval: 500
dataset:
  _target_: megatron.bridge.training.config.GPTDatasetConfig
  sequence_length: 1024
  skip_getting_attention_mask_from_dataset: true
ddp:
  _target_: megatron.bridge.training.config.DistributedDataParallelConfig
  bucket_size: 40000000
  check_for_nan_in_grad: true
  grad_reduce_in_fp32: true
  overlap_grad_reduce: true
  overlap_param_gather: true
  use_distributed_optimizer: true
  use_megatron_fsdp: false
model:
  _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider
  activation_func:
    _call_: false
    _target_: torch.nn.functional.silu
  add_bias_linear: false
  attention_backend:
    _args_:
    - 5
    _call_: true
    _target_: megatron.core.transformer.enums.AttnBackend
  bf16: true
  ffn_hidden_size: 8192
  fp8: null
  fp8_recipe: tensorwise
  gated_linear_unit: true
  generation_config:
    _call_: true
    _target_: transformers.generation.configuration_utils.GenerationConfig.from_dict
    config_dict:
      top_k: 50
  hidden_dropout: 0.0
  attention_dropout: 0.0
  hidden_size: 2048
  init_method:
    _args_: []
    _partial_: true
    _target_: torch.nn.init.normal_
    std: 0.02
  kv_channels: 64
  num_attention_heads: 32
  num_layers: 16
  num_query_groups: 8
  normalization: RMSNorm
  params_dtype:
    _call_: false
    _target_: torch.bfloat16
  position_embedding_type: rope
  recompute_granularity: null
  recompute_modules:
  - core_attn
  rotary_base: 500000.0
  seq_length: 131072
  share_embeddings_and_output_weights: true
  tensor_model_parallel_size: 2
  transformer_impl: transformer_engine
  vocab_size: 128256
optimizer:
  _target_: megatron.bridge.training.config.OptimizerConfig
  lr: 0.0003
  optimizer: adam
train:
  _target_: megatron.bridge.training.config.TrainingConfig
  global_batch_size: 512
  micro_batch_size: 4
  train_iters: 10
)";

ImportedPlan imported_config(const std::string& text) {
  auto plan = import_text(text, "run_config.yaml");
  EXPECT_TRUE(plan);
  return plan ? *plan : ImportedPlan();
}

TEST(MegatronConfig, OfTheBridgeGivesThePublishedParameters) {
  const ImportedPlan plan = imported_config(kBridge);
  EXPECT_EQ(plan.program, "Megatron-Bridge");
  EXPECT_EQ(names_of_techniques(plan), std::vector<std::string>{});
  EXPECT_TRUE(plan.unknown.empty());
  const Json tree = plan.tree.json();
  EXPECT_EQ(parameters_of(tree), 1'235'814'400);  // meta-llama/Llama-3.2-1B
  EXPECT_EQ(tree["training"]["sequence_length"], 1024);
  EXPECT_EQ(tree["training"]["micro_batch_size"], 4);
  EXPECT_EQ(tree["training"]["global_batch_size"], 512);
  EXPECT_EQ(tree["model"]["max_position_embeddings"], 131072);
  EXPECT_EQ(tree["parallelism"]["tensor"], 2);
  EXPECT_EQ(tree["parallelism"]["zero_stage"], 1);
  EXPECT_EQ(tree["parallelism"]["overlap_grad_reduce"], true);
}

// provide() in models/gpt_provider.py of Megatron-Bridge pads only where the configuration says so.
TEST(MegatronConfig, OfTheBridgePadsTheVocabularyOnlyWhereItSaysSo) {
  const auto multiple = [](const char* said) {
    std::string text = kBridge;
    const std::string model = "model:\n";
    text.insert(text.find(model) + model.size(), std::string("  should_pad_vocab: ") + said + "\n");
    return said_key(imported_config(text), "training.make_vocab_size_divisible_by");
  };
  EXPECT_EQ(multiple("false"), 1);
  EXPECT_NE(multiple("true"), 1);
}

// Here the default is that of TransformerConfig, true.
TEST(MegatronConfig, OfTheBridgeSaysInWhichTypeTheSoftmaxIs) {
  const auto in_fp32 = [](const std::string& said) {
    std::string text = kBridge;
    const std::string model = "model:\n";
    text.insert(text.find(model) + model.size(), said);
    return said_key(imported_config(text), "training.attention_softmax_in_fp32");
  };
  EXPECT_EQ(in_fp32(""), nullptr);
  EXPECT_EQ(in_fp32("  attention_softmax_in_fp32: false\n"), false);
  EXPECT_EQ(in_fp32("  attention_softmax_in_fp32: true\n"), true);
  EXPECT_EQ(in_fp32("  attention_softmax_in_fp32: false\n  apply_query_key_layer_scaling: true\n"),
            nullptr);
}

TEST(MegatronConfig, OfTheBridgeSaysWhoAgreesOnLargestElements) {
  const auto only_tensor = [](const char* said) {
    std::string text = kBridge;
    const std::string model = "model:\n";
    text.insert(text.find(model) + model.size(), std::string("  tp_only_amax_red: ") + said + "\n");
    return said_key(imported_config(text), "training.tp_only_amax_red");
  };
  EXPECT_EQ(only_tensor("true"), true);
  EXPECT_EQ(only_tensor("false"), nullptr);
}

TEST(MegatronConfig, OfTheBridgeTellsTheGemmasApart) {
  const auto of = [](const std::string& provider) {
    std::string text = kBridge;
    const std::string llama = "llama.llama_provider.Llama31ModelProvider";
    text.replace(text.find(llama), llama.size(), provider);
    return names_of_techniques(imported_config(text));
  };
  EXPECT_EQ(of("gemma.gemma_provider.GemmaModelProvider"), std::vector<std::string>{"gemma-norms"});
  EXPECT_EQ(of("gemma.gemma2_provider.Gemma2ModelProvider"),
            std::vector<std::string>{"gemma-layers"});
}

TEST(MegatronConfig, OfTheBridgeIsRefusedByTheNamesOfItsTechniques) {
  std::string text = kBridge;
  const auto say = [&](const std::string& before, const std::string& after) {
    text.replace(text.find(before), before.size(), after);
  };
  say("use_megatron_fsdp: false", "use_megatron_fsdp: true");
  say("fp8: null", "fp8: hybrid");
  say("fp8_recipe: tensorwise", "fp8_recipe: custom\n  moe_new_field: 7");
  const ImportedPlan plan = imported_config(text);
  EXPECT_THAT(names_of_techniques(plan), testing::UnorderedElementsAre("megatron-fsdp", "fp8"));
  ASSERT_EQ(plan.unknown.size(), 1u);
  EXPECT_EQ(plan.unknown.front().key, "moe-new-field");
}

TEST(MegatronConfig, OfYamlCfgIsRead) {
  const ImportedPlan plan = imported_config(R"(language_model:
  num_layers: 24
  hidden_size: 1024
  num_attention_heads: 16
  ffn_hidden_size: null
  add_bias_linear: False
  gated_linear_unit: False
  activation_func: swiglu
  bias_swiglu_fusion: True
  normalization: "LayerNorm"
  moe_grouped_gemm: False
model_parallel:
  tensor_model_parallel_size: 2
  sequence_parallel: True
  bf16: True
micro_batch_size: 2
global_batch_size: 128
seq_length: 4096
max_position_embeddings: 4096
position_embedding_type: rope
untie_embeddings_and_output_weights: True
transformer_impl: local
vocab_size: 50257
)");
  EXPECT_EQ(plan.program, "Megatron-LM");
  EXPECT_EQ(names_of_techniques(plan), std::vector<std::string>{});
  EXPECT_TRUE(plan.unknown.empty());
  const Json tree = plan.tree.json();
  EXPECT_EQ(tree["model"]["activation"], "swiglu");
  EXPECT_EQ(tree["model"]["num_layers"], 24);
  EXPECT_EQ(tree["model"]["add_bias_linear"], false);
  EXPECT_EQ(tree["parallelism"]["tensor"], 2);
  EXPECT_EQ(tree["parallelism"]["sequence_parallel"], true);
  EXPECT_EQ(tree["training"]["sequence_length"], 4096);
  EXPECT_EQ(tree["training"]["dtype"], "bf16");
}

}  // namespace
}  // namespace sim
