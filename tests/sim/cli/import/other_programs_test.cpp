#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/resolve/plan_tree.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/import_verdict.h"
#include "sim/cli/import/key_table.h"
#include "tests/sim/cli/onerank_program.h"

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

// train_configs/llama3_8b.toml of v0.1.0.
TEST(TorchtitanConfig, ReadsTheKeysOfItsFirstVersion) {
  const std::string text =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[float8]\nenable_fsdp_float8_all_gather = "
      "false\n"
      "filter_fqns = [\"output\"]\n[training]\ncompile = ";
  EXPECT_TRUE(techniques_of(imported(text + "false\n")).empty());
  EXPECT_TRUE(imported(text + "false\n").unknown.empty());
  EXPECT_EQ(techniques_of(imported(text + "true\n")), std::vector<std::string>{"compile"});
}

TEST(TorchtitanConfig, IsToldByItsName) {
  const auto plan = import_text("model = {name = \"llama3\", flavor = \"8B\"}\n", "job.toml");
  ASSERT_TRUE(plan);
  EXPECT_EQ(said_key(*plan, "model"), "llama3-8b");
}

TEST(DeepspeedConfig, SaysThatTokensAreLeftOut) {
  const ImportedPlan plan = imported(R"({"train_batch_size": 8,
"fp16": {"enabled": true},
"data_efficiency": {
"enabled": true,
"data_routing": {
"enabled": true,
"random_ltd": {
"enabled": true}}}})");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_THAT(plan.notes.front(), HasSubstr("file:8: data_efficiency.data_routing.random_ltd"));
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

// apply_fsdp() in torchtitan/models/llama3/infra/parallelize.py of v0.2.2: `always` is for [norm,
// output], too.
TEST(TorchtitanConfig, ReshardsTheLastUnitWhereItAlwaysReshards) {
  const auto of = [](const std::string& policy, const std::string& more = "") {
    return imported("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n" + more +
                    "fsdp_reshard_after_forward = \"" + policy + "\"\n");
  };
  EXPECT_EQ(said_key(of("always"), "parallelism.reshard_last_unit"), true);
  EXPECT_EQ(said_key(of("always"), "parallelism.zero_stage"), 3);
  EXPECT_TRUE(said_key(of("default"), "parallelism.reshard_last_unit").is_null());
  const ImportedPlan whole =
      of("always", "data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n");
  EXPECT_TRUE(said_key(whole, "parallelism.reshard_last_unit").is_null());
}

ImportedPlan of_pipeline(const std::string& lines, const std::string& training = "") {
  return imported("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n" + training +
                  "[parallelism]\npipeline_parallel_degree = 4\n" + lines);
}

// build_pipeline_schedule() and apply_fsdp() of v0.2.2: micro-batches of one sample by default, and
// parameters that stay gathered.
TEST(TorchtitanConfig, ReadsAPipeline) {
  const ImportedPlan plan = of_pipeline("", "local_batch_size = 12\n");
  EXPECT_EQ(techniques_of(plan), std::vector<std::string>{});
  EXPECT_EQ(said_key(plan, "parallelism.pipeline"), 4);
  EXPECT_EQ(said_key(plan, "parallelism.zero_stage"), 2);
  EXPECT_TRUE(said_key(plan, "parallelism.virtual_stages").is_null());
  EXPECT_EQ(said_key(plan, "training.micro_batch_size"), 1);
  EXPECT_EQ(said_key(plan, "training.gradient_accumulation_steps"), 12);
  const ImportedPlan freed = of_pipeline(
      "pipeline_parallel_microbatch_size = 4\nfsdp_reshard_after_forward = \"always\"\n");
  EXPECT_EQ(said_key(freed, "parallelism.zero_stage"), 3);
  EXPECT_EQ(said_key(freed, "parallelism.reshard_last_unit"), true);
  EXPECT_EQ(said_key(freed, "training.micro_batch_size"), 4);
  EXPECT_EQ(said_key(freed, "training.gradient_accumulation_steps"), 2);
}

/// A key that follows from what the job says, with this number of layers where a flag gives it.
Json derived_key(const ImportedPlan& plan, const std::string& path, int64_t layers = 0) {
  Json tree = plan.tree.json();
  if (layers > 0) estimator::set_in_tree(tree, "model.num_layers", layers, "--num-layers");
  plan.derive_keys(tree, {});
  return estimator::find_in_tree(tree, path);
}

// pipeline_llm(): two chunks where the schedule interleaves, or as many as layers_per_stage makes
// of 34 layers.
TEST(TorchtitanConfig, ReadsTheStagesOfAPipeline) {
  const std::string interleaved = "pipeline_parallel_schedule = \"Interleaved1F1B\"\n";
  EXPECT_EQ(derived_key(of_pipeline(interleaved), "parallelism.virtual_stages"), 2);
  EXPECT_EQ(derived_key(of_pipeline(interleaved + "pipeline_parallel_layers_per_stage = 3\n"),
                        "parallelism.virtual_stages"),
            3);
  EXPECT_EQ(derived_key(of_pipeline("pipeline_parallel_last_stage_less_layers = 4\n"
                                    "pipeline_parallel_first_stage_less_layers = 0\n"),
                        "parallelism.layers_per_stage"),
            (Json{9, 9, 9, 5}));
  EXPECT_EQ(said_key(of_pipeline("pipeline_parallel_schedule = \"GPipe\"\n"),
                     "parallelism.pipeline_schedule"),
            "gpipe");
}

// 14 layers and the two ends are 8 pieces of at most 2; with a head of 4 they are 5, 5, 4 and 4,
// the last of which is the head.
TEST(TorchtitanConfig, DealsTheLayersThatAFlagGivesTheModel) {
  const ImportedPlan by_size = of_pipeline("pipeline_parallel_layers_per_stage = 2\n");
  EXPECT_EQ(derived_key(by_size, "parallelism.virtual_stages"), 4);
  EXPECT_EQ(derived_key(by_size, "parallelism.virtual_stages", 14), 2);
  const ImportedPlan uneven = of_pipeline(
      "pipeline_parallel_last_stage_less_layers = 4\n"
      "pipeline_parallel_first_stage_less_layers = 0\n");
  EXPECT_EQ(derived_key(uneven, "parallelism.layers_per_stage", 14), (Json{5, 5, 4, 0}));
}

TEST(TorchtitanConfig, RefusesPipelinesThatNoPlanHas) {
  const std::vector<std::string> refused = {"torch-pipeline"};
  for (const char* lines : {"pipeline_parallel_schedule = \"ZBVZeroBubble\"\n",
                            "pipeline_parallel_schedule_csv = \"schedule.csv\"\n",
                            "module_fqns_per_model_part = [[\"layers.0\"], [\"layers.1\"]]\n"}) {
    EXPECT_EQ(techniques_of(of_pipeline(lines)), refused) << lines;
  }
  const std::string batch = "local_batch_size = 4\nglobal_batch_size = ";
  EXPECT_EQ(techniques_of(of_pipeline("data_parallel_shard_degree = 2\n", batch + "16\n")),
            refused);
  EXPECT_EQ(techniques_of(of_pipeline("data_parallel_shard_degree = 2\n", batch + "8\n")),
            std::vector<std::string>{});
  EXPECT_THROW(of_pipeline("pipeline_parallel_microbatch_size = 3\n"), estimator::UserError);
}

// parallelize_llama() in torchtitan/models/llama3/infra/parallelize.py and pipelining_fn in
// models/qwen3/__init__.py of v0.2.2.
TEST(TorchtitanConfig, RefusesWhatTorchTitanDoesNotDivide) {
  const auto of = [](const std::string& name, const std::string& degrees) {
    return imported("[model]\nname = \"" + name + "\"\nflavor = \"8B\"\n[parallelism]\n" + degrees);
  };
  const std::string replicas =
      "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 1\n";
  const std::string stages = "pipeline_parallel_degree = 4\n";
  EXPECT_THROW(of("llama3", replicas + stages), estimator::UserError);
  EXPECT_THROW(of("llama3", replicas + "tensor_parallel_degree = 2\n"), estimator::UserError);
  EXPECT_NO_THROW(of("llama3", replicas));
  EXPECT_NO_THROW(of("llama3", "data_parallel_shard_degree = 2\n" + stages));
  EXPECT_THROW(of("qwen3", "data_parallel_shard_degree = 2\n" + stages), estimator::UserError);
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

constexpr const char* kRestOfEight =
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
    "[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 8\n";

// fsdp_enabled in torchtitan/distributed/parallel_dims.py of v0.2.2.
TEST(TorchtitanConfig, ShardsOverSeveralRanksAlone) {
  const auto check = [](int64_t nodes, int64_t zero_stage) {
    const ImportedPlan plan = imported(kRestOfEight);
    Json tree = plan.tree.json();
    tree["cluster"] = {{"gpu", "h100"}, {"nodes", nodes}, {"gpus_per_node", 8}};
    tree["parallelism"]["zero_stage"] = zero_stage;
    plan.derive_keys(tree, {});
  };
  EXPECT_THROW(check(1, 3), estimator::UserError);
  EXPECT_NO_THROW(check(2, 3));
  EXPECT_NO_THROW(check(1, 0));
}

class TorchtitanProgram : public OnerankProgram {};

TEST_F(TorchtitanProgram, RefusesToShardOverTheOneRankThatIsLeft) {
  const std::string file = write("job.toml", kRestOfEight);
  const ProgramResult refused = run({"check", file, "--gpu", "h100", "--nodes", "1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("data_parallel_shard_degree -1 of 8 ranks is 1"));
}

TEST(TorchtitanConfig, ReadsDeterminismAndTheDegreesOfOldJobs) {
  const auto of = [](const std::string& keys) {
    return imported("[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + keys);
  };
  EXPECT_EQ(said_key(of("[debug]\ndeterministic = true\n"), "training.deterministic_mode"), true);
  EXPECT_TRUE(
      said_key(of("[debug]\ndeterministic = false\n"), "training.deterministic_mode").is_null());
  const ImportedPlan old =
      of("[experimental]\ncontext_parallel_degree = 4\npipeline_parallel_degree = 2\n"
         "enable_async_tensor_parallel = true\n");
  EXPECT_EQ(said_key(old, "parallelism.context"), 4);
  EXPECT_EQ(said_key(old, "parallelism.pipeline"), 2);
  EXPECT_EQ(techniques_of(old), (std::vector<std::string>{"async-tp", "torch-pipeline"}));
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

}  // namespace
}  // namespace sim
