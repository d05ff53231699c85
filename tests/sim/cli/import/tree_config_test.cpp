#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/key_table.h"

namespace sim {
namespace {

using estimator::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ImportedPlan tree_plan(const std::string& text) {
  auto plan = import_text(text, "file.yaml");
  EXPECT_TRUE(plan);
  return plan ? *plan : ImportedPlan();
}

std::vector<std::string> tree_techniques(const ImportedPlan& plan) {
  std::vector<std::string> names;
  for (const UsedTechnique& used : plan.techniques) names.push_back(used.technique->name);
  return names;
}

TEST(MachinesOfAccelerate, HaveTheSameNumberOfProcesses) {
  EXPECT_THROW(
      import_text("distributed_type: FSDP\nnum_processes: 12\nnum_machines: 5\n", "a.yaml"),
      estimator::UserError);
}

// str_to_bool() of accelerate's utils/environment.py.
TEST(SwitchesOfAccelerate, HaveTheWordsOfYaml) {
  const auto recompute = [](const std::string& word) {
    const auto plan = import_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: no\n"
        "num_processes: 8\nnum_machines: 1\nfsdp_config:\n  fsdp_version: 2\n"
        "  fsdp_activation_checkpointing: " +
            word + "\n",
        "accelerate.yaml");
    EXPECT_TRUE(plan && said_key(*plan, "training.dtype") == "fp32");
    return plan ? said_key(*plan, "training.recompute") : Json();
  };
  for (const char* word : {"true", "True", "yes", "on", "'1'"}) EXPECT_EQ(recompute(word), "full");
  for (const char* word : {"false", "NO", "off"}) EXPECT_TRUE(recompute(word).is_null());
  EXPECT_THROW(recompute("maybe"), estimator::UserError);
}

// A recipe of NeMo 1 has `model`, too, but other keys in it than a plan.
TEST(NemoConfig, IsRefusedInOneErrorThatNamesTheFlags) {
  const auto complaint = [](const std::string& text) {
    try {
      import_text(text, "gpt3_175b_hydra.yaml");
    } catch (const estimator::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string trainer = "trainer:\n  num_nodes: 16\n  devices: 8\n";
  const std::string of_model = complaint(trainer + "model:\n  encoder_seq_length: 2048\n");
  EXPECT_THAT(of_model, HasSubstr("gpt3_175b_hydra.yaml is a configuration of NeMo"));
  EXPECT_THAT(of_model, HasSubstr("trainer.devices model.encoder_seq_length"));
  EXPECT_THAT(of_model, HasSubstr("--seq-length for model.encoder_seq_length"));
  EXPECT_THAT(complaint(trainer + "exp_manager:\n  exp_dir: null\nmodel:\n  num_layers: 96\n"),
              HasSubstr("a configuration of NeMo"));
  EXPECT_EQ(complaint("model: gpt2\n"), "");
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

TEST(Accelerate, GivesMachinesShardingAndPrecision) {
  const ImportedPlan plan = tree_plan(R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
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
        tree_plan(std::string("distributed_type: ") + type + "\nmixed_precision: bf16\n");
    EXPECT_TRUE(plan.techniques.empty()) << type;
    EXPECT_EQ(said_key(plan, "training.framework"), "transformers") << type;
    EXPECT_EQ(said_key(plan, "training.dtype"), "bf16") << type;
    EXPECT_TRUE(said_key(plan, "training.mixed_precision").is_null()) << type;  // its default
  }
}

TEST(Accelerate, NamesWhatIsNotModelled) {
  using testing::UnorderedElementsAre;
  EXPECT_THAT(tree_techniques(tree_plan("distributed_type: FSDP\nfsdp_config:\n"
                                        "  fsdp_sharding_strategy: HYBRID_SHARD\n")),
              UnorderedElementsAre("fsdp1", "fsdp-units", "hsdp"));
  EXPECT_THAT(tree_techniques(tree_plan("distributed_type: DEEPSPEED\ndeepspeed_config:\n"
                                        "  deepspeed_config_file: zero1.json\n")),
              UnorderedElementsAre("another-file"));
  const ImportedPlan zero = tree_plan(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nmixed_precision: bf16\n");
  EXPECT_TRUE(zero.techniques.empty());
  EXPECT_EQ(said_key(zero, "training.framework"), "deepspeed");
  EXPECT_EQ(said_key(zero, "parallelism.zero_stage"), 3);
  EXPECT_EQ(said_key(zero, "parallelism.reduce_bucket_size"), 500'000'000);
  EXPECT_EQ(said_key(zero, "parallelism.stage3_param_persistence_threshold"), 100'000);
  EXPECT_THAT(tree_techniques(tree_plan("distributed_type: MULTI_XPU\n")),
              UnorderedElementsAre("other-device"));
}

TEST(GptNeox, IsToldWhereItsFileHasNoModel) {
  const ImportedPlan paths = tree_plan("{\"data_path\": \"enwik8\", \"save\": \"checkpoints\"}");
  EXPECT_TRUE(paths.unknown.empty());
  EXPECT_FALSE(paths.tree.json().contains("model"));
  EXPECT_EQ(said_key(paths, "training.framework"), "megatron-deepspeed");
  EXPECT_THAT(tree_techniques(tree_plan("{\"text_gen_type\": \"unconditional\", \"top_k\": 0}")),
              testing::ElementsAre("inference"));
}

// FullyShardedDataParallelPlugin in utils/dataclasses.py of accelerate 1.12: no policy is NO_WRAP.
TEST(Accelerate, RefusesUnitsOfFsdpThatAreNotTheLayers) {
  const auto of = [](const std::string& policy) {
    return tree_techniques(
        tree_plan("distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n" + policy));
  };
  EXPECT_THAT(of("  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"), IsEmpty());
  EXPECT_THAT(of("  fsdp_auto_wrap_policy: NO_WRAP\n"), ElementsAre("fsdp-units"));
  EXPECT_THAT(of("  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n"), ElementsAre("fsdp-units"));
  EXPECT_THAT(of(""), ElementsAre("fsdp-units"));
}

// commands/launch.py of accelerate 1.12.
TEST(Accelerate, ComputesInFp32WhereNothingIsSaid) {
  EXPECT_EQ(said_key(tree_plan("distributed_type: MULTI_GPU\n"), "training.dtype"), "fp32");
}

TEST(Accelerate, ReadsMegatronsDegreesAndRecompute) {
  const auto of = [](const std::string& keys) {
    return tree_plan("distributed_type: MEGATRON_LM\nmegatron_lm_config:\n" + keys);
  };
  const ImportedPlan plan =
      of("  megatron_lm_context_parallel_size: 2\n  megatron_lm_recompute_granularity: full\n"
         "  megatron_lm_num_micro_batches: 8\n  megatron_lm_expert_model_parallel_size: 4\n"
         "  megatron_lm_optimizer_cpu_offload: true\n");
  EXPECT_THAT(tree_techniques(plan), IsEmpty());
  EXPECT_EQ(said_key(plan, "parallelism.context"), 2);
  EXPECT_EQ(said_key(plan, "parallelism.expert"), 4);
  EXPECT_EQ(said_key(plan, "training.recompute"), "full");
  EXPECT_EQ(said_key(plan, "training.gradient_accumulation_steps"), 8);
  EXPECT_EQ(said_key(plan, "training.optimizer_cpu_offload"), true);
  const auto refused = [&](const std::string& keys) { return tree_techniques(of(keys)); };
  EXPECT_THAT(refused("  megatron_lm_use_custom_fsdp: true\n"), ElementsAre("megatron-fsdp"));
  const std::string block = "  megatron_lm_recompute_method: block\n";
  EXPECT_EQ(said_key(of(block), "training.recompute_method"), nullptr) << "nothing is recomputed";
  EXPECT_EQ(said_key(of("  megatron_lm_recompute_granularity: full\n" + block),
                     "training.recompute_method"),
            "block");
  EXPECT_THAT(refused("  megatron_lm_decoder_last_pipeline_num_layers: 3\n"),
              ElementsAre("stage-layers"));
  EXPECT_EQ(of("  megatron_lm_new_key: 1\n").unknown.size(), 1u);
}

// total_size in parallelism_config.py multiplies the sequence ranks in.
TEST(Accelerate, RefusesRanksThatDivideTheSequence) {
  const auto of = [](const char* size) {
    return tree_plan(std::string("distributed_type: MULTI_GPU\nparallelism_config:\n") +
                     "  parallelism_config_dp_shard_size: 2\n" +
                     "  parallelism_config_sp_size: " + size + "\n");
  };
  EXPECT_THAT(tree_techniques(of("4")), ElementsAre("trainer-parallelism"));
  EXPECT_THAT(tree_techniques(of("1")), IsEmpty());
  EXPECT_THAT(of("1").unknown, IsEmpty());
}

/// A small job of GPT-NeoX with these keys more.
ImportedPlan neox_plan(const std::string& keys) {
  return tree_plan(R"({"pipe_parallel_size": 1, "num_layers": 4, "hidden_size": 2048,
      "num_attention_heads": 16, "seq_length": 2048, )" +
                   keys + "}");
}

// ParallelMLP in megatron/model/transformer.py: 32,768 x 2 / 3 / 2 = 10,922 for each of gate and
// up, rounded up to 11,008; 8,192 x 2 / 3 / 2 = 2,730.
TEST(GptNeox, GivesGateAndUpTwoThirdsOfTheWidth) {
  const auto width = [](const std::string& keys) {
    return said_key(neox_plan(keys), "model.ffn_hidden_size");
  };
  EXPECT_EQ(width(R"("activation": "swiglu", "intermediate_size": 32768, "mlp_multiple_of": 256)"),
            11008);
  EXPECT_EQ(width(R"("activation": "swiglu", "intermediate_size": 86016, "mlp_multiple_of": 256)"),
            28672);
  EXPECT_EQ(width(R"("activation": "geglu")"), 2730);
  EXPECT_EQ(width(R"("activation": "gelu")"), 8192);
  EXPECT_EQ(width(R"("activation": "gelu", "intermediate_size": 5000, "mlp_multiple_of": 256)"),
            5120);
}

// calculate_derived() in neox_arguments/arguments.py.
TEST(GptNeox, IsInFp32WhereNoPrecisionIsSaid) {
  const auto type = [](const std::string& keys) {
    return said_key(neox_plan(keys + R"("train_iters": 1)"), "training.dtype");
  };
  const std::string job = R"("train_micro_batch_size_per_gpu": 1, )";
  EXPECT_EQ(type(job), "fp32");
  EXPECT_EQ(type(job + R"("fp16": {"enabled": false}, )"), "fp32");
  EXPECT_EQ(type(""), nullptr);  // a shape alone, whose precision another file says
  EXPECT_EQ(type(R"("fp16": {"enabled": true}, )"), "fp16");
  EXPECT_EQ(type(R"("precision": "bfloat16", )"), "bf16");
}

TEST(GptNeox, NamesWhatItsLayersDoDifferently) {
  const auto of = [](const std::string& keys) { return tree_techniques(neox_plan(keys)); };
  EXPECT_THAT(of(R"("checkpoint_activations": true, "checkpoint_num_layers": 4)"),
              ElementsAre("recompute-num-layers"));
  EXPECT_THAT(of(R"("checkpoint_activations": true, "checkpoint_num_layers": 1)"), IsEmpty());
  EXPECT_THAT(of(R"("attention_config": [[["flash", "global"], 2]])"),
              ElementsAre("heterogeneous-layers"));
  EXPECT_THAT(of(R"("attention_config": [[["flash"], 2], [["global"], 2]])"),
              ElementsAre("heterogeneous-layers"));
  EXPECT_THAT(of(R"("attention_config": [[["local", "global"], "all"]])"),
              ElementsAre("linear-attention"));
  const ImportedPlan flash = neox_plan(R"("attention_config": [[["flash"], 4]])");
  EXPECT_THAT(tree_techniques(flash), IsEmpty());
  EXPECT_EQ(said_key(flash, "training.attention"), "flash");
}

// Fusions are off by default (neox_args.py), and the softmax of PyTorch is in fp32 only where a key
// says so (forward_torch_softmax in fused_softmax.py).
TEST(GptNeox, HasTheSoftmaxThatItsKeysSay) {
  const auto softmax = [](const std::string& keys) {
    const ImportedPlan plan = neox_plan(keys + R"("train_iters": 1)");
    return std::pair{said_key(plan, "training.masked_softmax_fusion"),
                     said_key(plan, "training.attention_softmax_in_fp32")};
  };
  using Said = std::pair<Json, Json>;
  EXPECT_EQ(softmax(""), Said(false, false));
  EXPECT_EQ(softmax(R"("attention_softmax_in_fp32": true, )"), Said(false, nullptr));
  EXPECT_EQ(softmax(R"("apply_query_key_layer_scaling": true, )"), Said(false, nullptr));
  EXPECT_EQ(softmax(R"("scaled_upper_triang_masked_softmax_fusion": true, )").first, nullptr);
  EXPECT_EQ(softmax(R"("scaled_masked_softmax_fusion": true, )").first, nullptr);
}

// ParallelismArgs in nanotron/config/parallelism_config.py: no engine is all forwards before all
// backwards, and modes are named in any case.
TEST(NanotronConfig, HasItsOwnDefaultsAndSpelling) {
  const auto of = [](const std::string& keys) {
    return tree_plan("tokens:\n  sequence_length: 64\nparallelism:\n  dp: 2\n  tp: 2\n  pp: 2\n" +
                     keys);
  };
  EXPECT_EQ(said_key(of(""), "parallelism.pipeline_schedule"), "gpipe");
  EXPECT_EQ(said_key(of("  pp_engine: null\n"), "parallelism.pipeline_schedule"), "gpipe");
  EXPECT_EQ(said_key(of("  pp_engine: 1f1b\n"), "parallelism.pipeline_schedule"), "1f1b");
  const ImportedPlan lower = of("  tp_mode: reduce_scatter\n");
  EXPECT_EQ(said_key(lower, "parallelism.sequence_parallel"), true);
  EXPECT_EQ(said_key(lower, "parallelism.tp_recompute_allgather"), true);
  const ImportedPlan unfused =
      of("optimizer:\n  optimizer_factory:\n    torch_adam_is_fused: false\n");
  EXPECT_THAT(tree_techniques(unfused), ElementsAre("optimizer-kernels"));
}

}  // namespace
}  // namespace sim
