#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/key_table.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;
using testing::Not;

ImportedPlan imported(const std::string& text) {
  auto plan = import_text(text, "file");
  EXPECT_TRUE(plan);
  return plan ? *plan : ImportedPlan();
}

std::vector<std::string> techniques_of(const ImportedPlan& plan) {
  std::vector<std::string> names;
  for (const UsedTechnique& used : plan.techniques) names.push_back(used.technique->name);
  return names;
}

TEST(TorchtitanConfig, ReadsAJob) {
  const std::string text = R"(# for 64 A100 GPUs
[model]
name = "llama3"
flavor = "70B"

[training]
local_batch_size = 8
seq_len = 8192
steps = 1000  # of all

[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 8

[activation_checkpoint]
mode = "full"
)";
  const ImportedPlan plan = imported(text);
  const Json tree = plan.tree.json();
  EXPECT_EQ(tree["model"], "llama3-70b");
  EXPECT_EQ(tree["training"]["framework"], "torchtitan");
  EXPECT_EQ(tree["training"]["micro_batch_size"], 8);
  EXPECT_EQ(tree["training"]["recompute"], "full");
  EXPECT_EQ(tree["training"]["dtype"], "bf16");
  EXPECT_EQ(tree["parallelism"]["zero_stage"], 3);
  EXPECT_EQ(tree["parallelism"]["sequence_parallel"], true);
  EXPECT_TRUE(plan.techniques.empty());
  const ImportedPlan compiled = imported(text + "[compile]\nenable = true\n");
  EXPECT_EQ(techniques_of(compiled), std::vector<std::string>{"compile"});
  EXPECT_EQ(compiled.techniques[0].uses[0].place, "file:18");
}

// torchtitan/models/qwen3/__init__.py of v0.2.2.
TEST(TorchtitanConfig, NamesTheKnownFlavorsWhereOneIsUnknown) {
  const auto of = [](const std::string& name, const std::string& flavor) {
    return imported("[model]\nname = \"" + name + "\"\nflavor = \"" + flavor + "\"\n");
  };
  EXPECT_EQ(said_key(of("qwen3", "14B"), "model.num_layers"), 40);
  try {
    of("llama3", "13X");
    FAIL() << "an unknown flavor was taken";
  } catch (const estimator::UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("has no such flavor"));
    EXPECT_THAT(error.what(), testing::HasSubstr("8B, 70B, 405B"));
  }
  EXPECT_EQ(techniques_of(of("my_model", "13X")), std::vector<std::string>{"custom-layers"});
}

// torchtitan/models/llama4/__init__.py of v0.2.2: 4 x 256 x 2 / 3 = 682, half of it for the one
// expert of a token and the shared one, rounded up to a multiple of 256.
TEST(TorchtitanConfig, KnowsModelsWithExperts) {
  const auto of = [](const std::string& name, const std::string& flavor, const std::string& more) {
    return imported("[model]\nname = \"" + name + "\"\nflavor = \"" + flavor + "\"\n" + more);
  };
  const ImportedPlan llama = of("llama4", "debugmodel", "");
  EXPECT_TRUE(llama.techniques.empty());
  EXPECT_EQ(said_key(llama, "model.moe_ffn_hidden_size"), 512);
  EXPECT_EQ(said_key(llama, "model.moe_layer_freq"), Json({0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(said_key(llama, "model.moe_apply_probs_on_input"), true);
  EXPECT_EQ(said_key(of("qwen3", "30B-A3B", ""), "model.num_experts"), 128);
  using Names = std::vector<std::string>;
  EXPECT_EQ(techniques_of(of("llama4", "17bx16e_irope", "")), Names{"flex-attention"});
  EXPECT_EQ(techniques_of(of("deepseek_v3", "debugmodel", "")), Names{"latent-attention"});
  const ImportedPlan divided =
      of("llama4", "debugmodel", "[parallelism]\nexpert_parallel_degree = 2\n");
  EXPECT_TRUE(divided.techniques.empty());
  EXPECT_EQ(said_key(divided, "parallelism.expert"), 2);
  EXPECT_EQ(techniques_of(
                of("llama4", "debugmodel", "[parallelism]\nexpert_tensor_parallel_degree = 2\n")),
            Names{"fsdp-experts"});
}

// ParallelDims in torchtitan/distributed/parallel_dims.py: the data ranks are replicas x shards.
TEST(TorchtitanConfig, CountsReplicasAmongTheDataRanks) {
  const auto of = [](const std::string& degrees) {
    return imported("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n" + degrees);
  };
  const ImportedPlan hybrid =
      of("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 8\n");
  EXPECT_TRUE(hybrid.techniques.empty());
  EXPECT_EQ(said_key(hybrid, "parallelism.data"), 32);
  EXPECT_EQ(said_key(hybrid, "parallelism.num_distributed_optimizer_instances"), 4);
  EXPECT_EQ(said_key(hybrid, "parallelism.zero_stage"), 3);
  const ImportedPlan whole =
      of("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n");
  EXPECT_EQ(said_key(whole, "parallelism.data"), 4);
  EXPECT_EQ(said_key(whole, "parallelism.num_distributed_optimizer_instances"), 1);
  EXPECT_EQ(said_key(whole, "parallelism.zero_stage"), 0);
  const ImportedPlan rest =
      of("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = -1\n");
  EXPECT_TRUE(said_key(rest, "parallelism.data").is_null());
  EXPECT_EQ(said_key(rest, "parallelism.num_distributed_optimizer_instances"), 4);
}

// maybe_enable_amp() in torchtitan/distributed/utils.py of v0.2.2.
TEST(TorchtitanConfig, HasTypesThatFollowFromSharding) {
  const auto of = [](const std::string& degrees) {
    return imported("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n" + degrees);
  };
  const ImportedPlan tensor = of("data_parallel_shard_degree = 1\ntensor_parallel_degree = 8\n");
  EXPECT_EQ(said_key(tensor, "training.dtype"), "fp32");
  EXPECT_EQ(said_key(tensor, "parallelism.zero_stage"), 0);
  EXPECT_TRUE(tensor.techniques.empty());
  ASSERT_EQ(tensor.notes.size(), 1u);
  EXPECT_THAT(tensor.notes.front(), HasSubstr("file:5: without FSDP all is in fp32"));
  const ImportedPlan replicated =
      of("data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n");
  EXPECT_EQ(techniques_of(replicated), std::vector<std::string>{"autocast"});
  const ImportedPlan context = of("data_parallel_shard_degree = 1\ncontext_parallel_degree = 2\n");
  EXPECT_EQ(said_key(context, "training.dtype"), "bf16");
  EXPECT_TRUE(context.techniques.empty());
  EXPECT_EQ(said_key(of("tensor_parallel_degree = 8\n"), "training.dtype"), "bf16");
  EXPECT_TRUE(of("data_parallel_shard_degree = 1\n[training]\nmixed_precision_param = "
                 "\"float32\"\n")
                  .techniques.empty());
}

TEST(TorchtitanConfig, SaysWhereItIsNoToml) {
  try {
    import_text("[model]\nname = \n", "file.toml");
    FAIL();
  } catch (const estimator::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 2"));
  }
}

TEST(DeepspeedConfig, HasAllButTheModel) {
  const ImportedPlan plan =
      imported(R"({"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true},
      "gradient_clipping": 1.0, "zero_optimization": {"stage": 1, "overlap_comm": true}})");
  const Json tree = plan.tree.json();
  EXPECT_EQ(tree["training"]["framework"], "deepspeed");
  EXPECT_EQ(tree["training"]["micro_batch_size"], 4);
  EXPECT_EQ(tree["training"]["dtype"], "bf16");
  EXPECT_EQ(tree["parallelism"]["zero_stage"], 1);
  EXPECT_EQ(tree["parallelism"]["overlap_comm"], true);
  EXPECT_TRUE(plan.techniques.empty());
}

TEST(DeepspeedConfig, HasOneGroupOfParametersForItsOwnOptimizer) {
  const auto groups = [](const std::string& optimizer) {
    return said_key(imported(R"({"zero_optimization": {"stage": 2})" + optimizer + "}"),
                    "training.decay_groups");
  };
  EXPECT_EQ(groups(R"(, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}})"), false);
  EXPECT_TRUE(groups("").is_null());
}

// "auto" is what the Trainer puts in its place; what the file does not say is DeepSpeed's default.
TEST(DeepspeedConfig, TellsTheTrainersSizesFromDeepspeedsDefaults) {
  const Json said = imported(R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": 2e8,
      "stage3_prefetch_bucket_size": "auto", "stage3_max_live_parameters": 3e8}})")
                        .tree.json()["parallelism"];
  EXPECT_EQ(said["zero_stage"], 3);
  EXPECT_EQ(said["reduce_bucket_size"], 200'000'000);
  EXPECT_EQ(said.value("stage3_prefetch_bucket_size", Json("auto")), "auto");
  EXPECT_EQ(said["stage3_param_persistence_threshold"], 100'000);
  EXPECT_EQ(said["stage3_max_live_parameters"], 300'000'000);
  const Json second = imported(R"({"zero_optimization": {"stage": 2}})").tree.json()["parallelism"];
  EXPECT_EQ(second["reduce_bucket_size"], 500'000'000);
  EXPECT_FALSE(second.contains("stage3_param_persistence_threshold"));
}

// A batch of a step is micro-batch x accumulation x ranks (_set_batch_related_parameters in
// deepspeed/runtime/config.py).
TEST(DeepspeedConfig, SaysTheAccumulation) {
  const ImportedPlan plan =
      imported(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8})");
  EXPECT_EQ(said_key(plan, "training.gradient_accumulation_steps"), 8);
  const ImportedPlan open = imported(
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})");
  EXPECT_TRUE(said_key(open, "training.gradient_accumulation_steps").is_null());
}

TEST(DeepspeedConfig, AsksForAMicroBatchThatFlagsSay) {
  const auto complaint = [](const std::string& text) -> std::string {
    const ImportedPlan plan = imported(text);
    try {
      check_complete(plan, plan.tree.json(), true);
    } catch (const estimator::UserError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* size :
       {R"("train_batch_size": 64)", R"("train_micro_batch_size_per_gpu": "auto")"}) {
    EXPECT_THAT(complaint(fmt::format("{{{}}}", size)), HasSubstr("--mbs N")) << size;
  }
  EXPECT_THAT(complaint(R"({"train_micro_batch_size_per_gpu": 1})"), Not(HasSubstr("--mbs")));
}

TEST(DeepspeedConfig, RefusesTwoTypes) {
  EXPECT_THROW(imported(R"({"train_batch_size": 8, "fp16": {"enabled": true},
                            "bf16": {"enabled": true}})"),
               estimator::UserError);
}

TEST(DeepspeedConfig, NamesWhatIsNotModelled) {
  const auto of = [](const std::string& zero) {
    return techniques_of(imported("{\"zero_optimization\": {\"stage\": 3, " + zero + "}}"));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(of(R"("offload_optimizer": {"device": "cpu"})"), Names{"deepspeed-offload"});
  EXPECT_EQ(of(R"("offload_param": {"device": "nvme"})"), Names{"deepspeed-offload"});
  EXPECT_EQ(of(R"("offload_param": {"device": "none", "pin_memory": true})"), Names{});
  EXPECT_EQ(of(R"("zero_hpz_partition_size": 8)"), Names{"zero-plus-plus"});
  EXPECT_EQ(of(R"("zero_quantized_weights": true)"), Names{"zero-plus-plus"});
  EXPECT_EQ(of(R"("zero_quantized_weights": false, "zero_hpz_partition_size": 1)"), Names{});
  EXPECT_EQ(of(R"("mics_shard_size": 8)"), Names{"mics"});
  EXPECT_EQ(of(R"("contiguous_gradients": false)"), Names{"deepspeed-buffers"});
  EXPECT_EQ(of(R"("contiguous_gradients": true)"), Names{});
  EXPECT_EQ(techniques_of(imported(R"({"train_batch_size": 8,
      "data_types": {"grad_accum_dtype": "fp32"}})")),
            Names{"deepspeed-wide-gradients"});
}

TEST(ImportedFiles, MayHaveAKeyWithoutAName) {
  const ImportedPlan plan = imported(R"({"train_batch_size": 8, "device_map": {"": 0}})");
  ASSERT_EQ(plan.unknown.size(), 1u);
  EXPECT_EQ(plan.unknown.front().place, "file");
}

TEST(ImportedFiles, LeavePlansAlone) {
  EXPECT_FALSE(import_text(R"({"model": "gpt2", "cluster": {"gpu": "h100"}})", "plan.json"));
  EXPECT_FALSE(import_text("model: gpt2\ncluster:\n  gpu: h100\n", "plan.yaml"));
  EXPECT_FALSE(import_text("{not: json}", "plan.yaml"));
}

TEST(ImportTables, NameTechniquesThatThereAre) {
  for (const Technique& technique : techniques()) {
    EXPECT_FALSE(technique.what.empty()) << technique.name;
    EXPECT_FALSE(technique.errs.empty()) << technique.name;
  }
}

TEST(NanotronConfig, ReadsAJob) {
  const std::string text = R"(model:
  dtype: bfloat16
  model_config:
    hidden_act: silu
    hidden_size: 4096
    num_attention_heads: 32
    num_hidden_layers: 32
    num_key_value_heads: 8
optimizer:
  zero_stage: 1
parallelism:
  dp: 4
  pp: 2
  pp_engine: afab
  tp: 8
  tp_mode: REDUCE_SCATTER
tokens:
  batch_accumulation_per_replica: 8
  micro_batch_size: 2
  sequence_length: 4096
)";
  const auto plan = import_text(text, "job.yaml");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->program, "nanotron");
  EXPECT_TRUE(plan->unknown.empty());
  const Json tree = plan->tree.json();
  EXPECT_EQ(tree["training"]["framework"], "nanotron");
  EXPECT_EQ(tree["training"]["dtype"], "bf16");
  EXPECT_EQ(tree["training"]["gradient_accumulation_steps"], 8);
  EXPECT_EQ(tree["parallelism"]["pipeline_schedule"], "gpipe");
  EXPECT_EQ(tree["parallelism"]["sequence_parallel"], true);
  EXPECT_EQ(tree["model"]["num_query_groups"], 8);
  EXPECT_FALSE(import_text("model: gpt2\n", "plan.yaml").has_value());
}

// ParallelismArgs in nanotron/config/parallelism_config.py: the gathered input is recomputed unless
// a file says no. The degrees multiply to the world.
TEST(NanotronConfig, SaysHowLinearLayersGatherAndHowManyGpusThereAre) {
  const auto of = [](const std::string& keys) {
    const auto plan = import_text(
        "tokens:\n  sequence_length: 64\nparallelism:\n  dp: 2\n  tp: 2\n" + keys, "job.yaml");
    EXPECT_TRUE(plan && plan->techniques.empty());
    return plan ? plan->tree.json() : Json();
  };
  const Json asynchronous =
      of("  tp_mode: REDUCE_SCATTER\n  tp_linear_async_communication: true\n");
  EXPECT_EQ(asynchronous["parallelism"]["tp_linear_async_communication"], true);
  EXPECT_EQ(asynchronous["parallelism"]["tp_recompute_allgather"], true);
  EXPECT_EQ(asynchronous["cluster"], Json({{"nodes", 1}, {"gpus_per_node", 4}}));
  const Json kept = of("  tp_mode: REDUCE_SCATTER\n  tp_recompute_allgather: false\n");
  EXPECT_FALSE(kept["parallelism"].contains("tp_recompute_allgather"));
  EXPECT_FALSE(of("  tp_mode: ALL_REDUCE\n")["parallelism"].contains("tp_recompute_allgather"));
  EXPECT_FALSE(of("  pp: 4\n").contains("cluster"));  // 16, of which a machine may have any part
}

TEST(GptNeoxConfig, ReadsParallelResiduals) {
  const auto model = [](const std::string& keys) {
    const auto plan = import_text(
        "{\"pipe_parallel_size\": 1, \"num_layers\": 2, \"hidden_size\": 64, " + keys + "}",
        "model.yml");
    EXPECT_TRUE(plan && plan->techniques.empty());
    return plan ? plan->tree.json()["model"] : Json();
  };
  EXPECT_EQ(model("\"gpt_j_residual\": true")["parallel_residual"], true);
  EXPECT_EQ(model("\"gpt-j-residual\": true, \"gpt_j_tied\": true")["tied_layernorm"], true);
  EXPECT_FALSE(model("\"gpt_j_tied\": true").contains("tied_layernorm"));
}

TEST(GptNeoxConfig, ReadsAFlowOfKeysAfterAComment) {
  const std::string text = R"(# pretraining
{
  "pipe-parallel-size": 0, "model-parallel-size": 4,
  "num-layers": 40, "hidden-size": 5120, "num-attention-heads": 40, "seq-length": 2048,
  "pos-emb": "rotary", "rotary_pct": 0.25, "no-weight-tying": true,
  "optimizer": {"type": "Adam", "params": {"lr": 0.0001, }},
  "zero_optimization": {"stage": 1, "cpu_offload": False},
  "checkpoint-activations": true, "partition-activations": true,
  "fp16": {"enabled": true, },
})";
  const auto plan = import_text(text, "13B.yml");
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->techniques.empty());
  EXPECT_TRUE(plan->unknown.empty());
  const Json tree = plan->tree.json();
  EXPECT_EQ(tree["training"]["framework"], "megatron-deepspeed");
  EXPECT_EQ(tree["training"]["dtype"], "fp16");
  EXPECT_EQ(tree["training"]["recompute"], "full");
  EXPECT_EQ(tree["training"]["distribute_saved_activations"], true);
  EXPECT_EQ(tree["parallelism"]["pipeline"], 1);
  EXPECT_EQ(tree["parallelism"]["zero_stage"], 1);
  EXPECT_EQ(tree["model"]["rotary_percent"], 0.25);
  EXPECT_EQ(tree["model"]["tie_embeddings"], false);
}

ImportedPlan imported_yaml(const std::string& text) {
  auto plan = import_text(text, "file.yaml");
  EXPECT_TRUE(plan);
  return plan ? *plan : ImportedPlan();
}

TEST(Accelerate, GivesMachinesShardingAndPrecision) {
  const ImportedPlan plan = imported_yaml(R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_activation_checkpointing: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
parallelism_config:
  parallelism_config_tp_size: 4
)");
  EXPECT_TRUE(plan.unknown.empty());
  EXPECT_TRUE(plan.techniques.empty());
  EXPECT_EQ(said_key(plan, "training.framework"), "transformers");
  EXPECT_EQ(said_key(plan, "training.dtype"), "bf16");
  EXPECT_EQ(said_key(plan, "training.recompute"), "full");
  EXPECT_EQ(said_key(plan, "parallelism.zero_stage"), 3);
  EXPECT_EQ(said_key(plan, "parallelism.tensor"), 4);
  EXPECT_EQ(said_key(plan, "cluster.nodes"), 2);
  EXPECT_EQ(said_key(plan, "cluster.gpus_per_node"), 8);
  EXPECT_FALSE(plan.tree.json().contains("model"));
}

TEST(Accelerate, MeansAutocastWithoutSharding) {
  for (const char* type : {"'NO'", "MULTI_GPU"}) {
    const ImportedPlan plan =
        imported_yaml(std::string("distributed_type: ") + type + "\nmixed_precision: bf16\n");
    EXPECT_TRUE(plan.techniques.empty()) << type;
    EXPECT_EQ(said_key(plan, "training.framework"), "transformers") << type;
    EXPECT_EQ(said_key(plan, "training.dtype"), "bf16") << type;
    EXPECT_TRUE(said_key(plan, "training.mixed_precision").is_null()) << type;  // its default
  }
}

TEST(Accelerate, NamesWhatIsNotModelled) {
  using testing::UnorderedElementsAre;
  EXPECT_THAT(techniques_of(imported_yaml("distributed_type: FSDP\nfsdp_config:\n"
                                          "  fsdp_sharding_strategy: HYBRID_SHARD\n")),
              UnorderedElementsAre("fsdp1", "hsdp"));
  EXPECT_THAT(techniques_of(imported_yaml("distributed_type: DEEPSPEED\ndeepspeed_config:\n"
                                          "  deepspeed_config_file: zero1.json\n")),
              UnorderedElementsAre("another-file"));
  const ImportedPlan zero = imported_yaml(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nmixed_precision: bf16\n");
  EXPECT_TRUE(zero.techniques.empty());
  EXPECT_EQ(said_key(zero, "training.framework"), "deepspeed");
  EXPECT_EQ(said_key(zero, "parallelism.zero_stage"), 3);
  EXPECT_EQ(said_key(zero, "parallelism.reduce_bucket_size"), 500'000'000);
  EXPECT_EQ(said_key(zero, "parallelism.stage3_param_persistence_threshold"), 100'000);
  EXPECT_THAT(techniques_of(imported_yaml("distributed_type: MULTI_XPU\n")),
              UnorderedElementsAre("other-device"));
}

TEST(GptNeox, IsToldWhereItsFileHasNoModel) {
  const ImportedPlan paths =
      imported_yaml("{\"data_path\": \"enwik8\", \"save\": \"checkpoints\"}");
  EXPECT_TRUE(paths.unknown.empty());
  EXPECT_FALSE(paths.tree.json().contains("model"));
  EXPECT_EQ(said_key(paths, "training.framework"), "megatron-deepspeed");
  EXPECT_THAT(techniques_of(imported_yaml("{\"text_gen_type\": \"unconditional\", \"top_k\": 0}")),
              testing::ElementsAre("inference"));
}

}  // namespace
}  // namespace sim
