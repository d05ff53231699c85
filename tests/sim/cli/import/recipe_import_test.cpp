// Recipes of Megatron-Bridge and registries of TorchTitan: functions of Python that make jobs.
#include <gmock/gmock.h>

#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/input/plan_file.h"
#include "sim/cli/process/temporary_folder.h"
#include "tests/sim/cli/import/technique_names.h"

namespace sim {
namespace {

using estimator::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A checkout with a recipe as Megatron-Bridge has them: one that changes another, which lies in
/// another module.
class RecipeFiles : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    estimator::write_file_whole(file.string(), text);
  }
  std::string path(const std::string& file) const { return (folder_.path() / file).string(); }
  ImportedPlan imported(const std::string& named) const {
    return *read_plan_or_other_file(path(named)).imported;
  }
  std::string error_of(const std::string& named) const {
    try {
      imported(named);
    } catch (const estimator::UserError& error) {
      return error.what();
    }
    return "";
  }

  void write_bridge() {
    write("src/megatron/bridge/recipes/llama.py", R"(
from megatron.bridge import AutoBridge
from megatron.bridge.training.config import ConfigContainer

def llama3_70b_pretrain_config() -> ConfigContainer:
    cfg = ConfigContainer(model=None, train=TrainingConfig(global_batch_size=512, micro_batch_size=1),
                          ddp=DistributedDataParallelConfig(use_distributed_optimizer=True,
                                                            data_parallel_sharding_strategy="optim_grads_params"),
                          dataset=GPTDatasetConfig(seq_length=4096), comm_overlap=None, mixed_precision="bf16-mixed")
    cfg.model = AutoBridge.from_hf_pretrained("meta-llama/Meta-Llama-3-70B").get_model_config()
    cfg.model.pipeline_model_parallel_layout = None
    return cfg
)");
    write("src/megatron/bridge/training/mixed_precision.py", R"(
@dataclass
class MixedPrecisionConfig:
    fp8_recipe: str = "tensorwise"

def bf16_mixed():
    return MixedPrecisionConfig(bf16=True, grad_reduce_in_fp32=True)
def bf16_with_mxfp8_mixed():
    cfg = bf16_mixed()
    cfg.fp8 = "e4m3"
    cfg.fp8_recipe = "mxfp8"
    return cfg
def bf16_with_nvfp4_mixed():
    cfg = bf16_mixed()
    cfg.fp4 = "e2m1"
    cfg.fp4_recipe = "nvfp4"
    cfg.fp4_param_gather = True
    return cfg
)");
    write("src/megatron/bridge/perf_recipes/llama3.py", R"(
from megatron.bridge.recipes.llama import llama3_70b_pretrain_config
from megatron.bridge.training.mixed_precision import bf16_with_mxfp8_mixed, bf16_with_nvfp4_mixed
COMMON = {"NCCL_NVLS_ENABLE": 0}

def llama3_70b_pretrain_64gpu_gb200_bf16_config():
    cfg = llama3_70b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_size = 4
    cfg.model.virtual_pipeline_model_parallel_size = 5
    cfg.model.sequence_parallel = True
    cfg.train.global_batch_size = 256
    cfg.dataset.seq_length = 8192
    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)
    cfg.env_vars = {**COMMON, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    return cfg

def llama3_70b_pretrain_64gpu_mi450x_fp8mx_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_bf16_config()
    cfg.mixed_precision = bf16_with_mxfp8_mixed()
    cfg.ddp.use_megatron_fsdp = True
    cfg.model.num_layers = 4
    return cfg

def llama3_70b_pretrain_64gpu_gb200_optimizer_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_bf16_config()
    cfg.mixed_precision = bf16_with_mxfp8_mixed()
    cfg.mixed_precision.fp8 = None
    cfg.comm_overlap.overlap_param_gather_with_optimizer_step = True
    cfg.optimizer.use_precision_aware_optimizer = True
    cfg.optimizer.main_grads_dtype = torch.bfloat16
    cfg.optimizer.exp_avg_dtype = torch.bfloat16
    cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16
    return cfg

def llama3_70b_pretrain_64gpu_gb200_aware_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_bf16_config()
    cfg.optimizer.use_precision_aware_optimizer = True
    cfg.optimizer.exp_avg_dtype = torch.bfloat16
    cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16
    return cfg

def llama3_70b_pretrain_64gpu_gb200_fp8mx_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_bf16_config()
    cfg.mixed_precision = bf16_with_mxfp8_mixed()
    cfg.model.disable_parameter_transpose_cache = True
    return cfg

def llama3_70b_pretrain_64gpu_gb200_fp8mx_param_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_fp8mx_config()
    cfg.mixed_precision.fp8_param_gather = True
    return cfg

def llama3_70b_pretrain_64gpu_gb200_nvfp4_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_bf16_config()
    cfg.mixed_precision = bf16_with_nvfp4_mixed()
    cfg.model.disable_parameter_transpose_cache = True
    return cfg

def llama3_70b_pretrain_64gpu_gb200_experts_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_bf16_config()
    cfg.model.num_moe_experts = 8
    cfg.model.moe_router_fusion = True
    cfg.model.moe_pad_experts_for_cuda_graph_inference = True
    cfg.model.disable_parameter_transpose_cache = True
    cfg.model.moe_token_dispatcher_type = "flex"
    cfg.model.moe_flex_dispatcher_backend = "hybridep"
    cfg.model.moe_deepep_num_sms = 20
    cfg.model.moe_hybridep_num_sms = 32
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["attn", "moe_router", "moe_preprocess"]
    cfg.model.cuda_graph_warmup_steps = 2
    return cfg

def llama3_70b_pretrain_64gpu_gb200_fused_experts_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_experts_config()
    cfg.mixed_precision = bf16_with_mxfp8_mixed()
    cfg.mixed_precision.fp8_param_gather = True
    cfg.mixed_precision.fp8_dot_product_attention = True
    cfg.model.fp8_output_proj = True
    cfg.model.use_transformer_engine_op_fuser = True
    cfg.model.moe_mlp_glu_interleave_size = 32
    cfg.model.moe_expert_rank_capacity_factor = 1.5
    cfg.model.moe_paged_stash = True
    cfg.model.moe_paged_stash_buffer_size_factor_cuda = 1.2
    cfg.model.moe_paged_stash_buffer_size_factor_cpu = 1.0
    return cfg

def llama3_70b_pretrain_64gpu_gb200_unknown_fuser_config():
    cfg = llama3_70b_pretrain_64gpu_gb200_experts_config()
    cfg.model.use_transformer_engine_op_fuser = asked_elsewhere()
    return cfg

def _helper_config():
    return None
)");
  }

  TemporaryFolder folder_;
};

TEST_F(RecipeFiles, AreFollowedThroughTheModulesThatTheyImport) {
  write_bridge();
  const ImportedPlan plan = imported(
      "src/megatron/bridge/perf_recipes/llama3.py:llama3_70b_pretrain_64gpu_gb200_bf16_config");
  EXPECT_THAT(names_of_techniques(plan), IsEmpty());
  EXPECT_THAT(plan.unknown, IsEmpty());
  const Json tree = plan.tree.json();
  EXPECT_EQ(tree["model"]["preset"], "llama3-70b");
  EXPECT_EQ(tree["cluster"]["gpu"], "gb200");
  EXPECT_EQ(tree["cluster"]["nodes"], 16);
  EXPECT_EQ(tree["cluster"]["gpus_per_node"], 4);
  EXPECT_EQ(tree["cluster"]["nvls"], false);
  EXPECT_EQ(tree["parallelism"]["virtual_stages"], 5);
  EXPECT_EQ(tree["parallelism"]["tp_comm_overlap"], true);
  EXPECT_EQ(tree["parallelism"]["bucket_elements"], 128 * 1024 * 1024);
  EXPECT_EQ(tree["training"]["global_batch_size"], 256);
  EXPECT_EQ(tree["training"]["sequence_length"], 8192);
  EXPECT_EQ(tree["memory"]["allocator"], "expandable_segments:True");
}

TEST_F(RecipeFiles, SayTheirGraphsAndHowTheirExpertsRun) {
  write_bridge();
  const ImportedPlan plan = imported(
      "src/megatron/bridge/perf_recipes/llama3.py:llama3_70b_pretrain_64gpu_gb200_experts_config");
  EXPECT_THAT(names_of_techniques(plan), IsEmpty());
  EXPECT_THAT(plan.unknown, IsEmpty());
  const Json training = plan.tree.json()["training"];
  EXPECT_EQ(training["moe_router_fusion"], true);
  EXPECT_EQ(training["moe_token_dispatcher_type"], "flex");
  EXPECT_EQ(training["moe_flex_dispatcher_backend"], "hybridep");
  EXPECT_EQ(training["moe_flex_dispatcher_num_sms"], 32);
  EXPECT_EQ(training["cuda_graph_impl"], "transformer_engine");
  EXPECT_EQ(training["cuda_graph_modules"], Json({"attn", "moe_router", "moe_preprocess"}));
}

TEST_F(RecipeFiles, SayHowFusedKernelsRunTheirExperts) {
  write_bridge();
  const std::string file =
      "src/megatron/bridge/perf_recipes/llama3.py:llama3_70b_pretrain_64gpu_gb200_";
  const ImportedPlan plan = imported(file + "fused_experts_config");
  EXPECT_THAT(names_of_techniques(plan), IsEmpty());
  EXPECT_THAT(plan.unknown, IsEmpty());
  const Json training = plan.tree.json()["training"];
  EXPECT_EQ(training["fp8_dot_product_attention"], true);
  EXPECT_EQ(training["fp8_output_proj"], true);
  EXPECT_EQ(training["use_transformer_engine_op_fuser"], true);
  EXPECT_EQ(training["moe_mlp_glu_interleave_size"], 32);
  EXPECT_EQ(training["moe_expert_rank_capacity_factor"], 1.5);
  EXPECT_EQ(training["moe_paged_stash"], true);
  EXPECT_EQ(training["moe_paged_stash_buffer_size_factor_cuda"], 1.2);
  EXPECT_EQ(training["moe_paged_stash_buffer_size_factor_cpu"], 1.0);
  EXPECT_THAT(names_of_techniques(imported(file + "unknown_fuser_config")),
              ElementsAre("other-fusions"));
}

TEST_F(RecipeFiles, SayTheirTechniquesWithTheirPlaces) {
  write_bridge();
  const ImportedPlan plan = imported(
      "src/megatron/bridge/perf_recipes/llama3.py:llama3_70b_pretrain_64gpu_mi450x_fp8mx_config");
  EXPECT_THAT(names_of_techniques(plan), ElementsAre("megatron-fsdp", "other-device"));
  EXPECT_EQ(plan.techniques[0].uses[0].place, "llama.py:7");
  EXPECT_EQ(plan.tree.json()["training"]["fp8_recipe"], "mxfp8");
  EXPECT_EQ(plan.tree.json()["model"]["num_layers"], 4);
}

// The recipe of 8-bit products counts also where there are none (mixed_precision.setup() of the
// Bridge): master weights are Megatron-LM's.
TEST_F(RecipeFiles, SayHowTheirOptimizerSteps) {
  write_bridge();
  const ImportedPlan plan = imported(
      "src/megatron/bridge/perf_recipes/"
      "llama3.py:llama3_70b_pretrain_64gpu_gb200_optimizer_config");
  EXPECT_THAT(names_of_techniques(plan), IsEmpty());
  EXPECT_THAT(plan.unknown, IsEmpty());
  const Json tree = plan.tree.json();
  EXPECT_EQ(tree["parallelism"]["overlap_param_gather_with_optimizer_step"], true);
  EXPECT_EQ(tree["training"]["exp_avg_dtype"], "bf16");
  EXPECT_EQ(tree["training"]["exp_avg_sq_dtype"], "bf16");
  EXPECT_FALSE(tree["training"].contains("use_precision_aware_optimizer"));
}

TEST_F(RecipeFiles, KeepMasterWeightsWholeInSixteenBitsToo) {
  write_bridge();
  const Json training = imported(
                            "src/megatron/bridge/perf_recipes/"
                            "llama3.py:llama3_70b_pretrain_64gpu_gb200_aware_config")
                            .tree.json()["training"];
  EXPECT_EQ(training["exp_avg_dtype"], "bf16");
  EXPECT_FALSE(training.contains("use_precision_aware_optimizer"));
}

// quantize_weight() in transformer_engine/pytorch/module/base.py makes nothing of a parameter that
// is in 8 bits, and is not called in 16.
TEST_F(RecipeFiles, QuantizeWeightsAgainWhereTheyAreKeptInSixteenBits) {
  write_bridge();
  const std::string recipes =
      "src/megatron/bridge/perf_recipes/llama3.py:llama3_70b_pretrain_64gpu_gb200_";
  EXPECT_THAT(names_of_techniques(imported(recipes + "fp8mx_config")),
              ElementsAre("weights-quantized-again"));
  EXPECT_THAT(names_of_techniques(imported(recipes + "fp8mx_param_config")), IsEmpty());
}

/// Fine-tunings, as recipes/llama/h100/llama3.py has them.
constexpr const char* kFineTunings = R"(
from megatron.bridge.recipes.llama import llama3_70b_pretrain_config
from megatron.bridge.recipes.utils.dataset_utils import default_peft_config
from megatron.bridge.peft.dora import DoRA
from megatron.bridge.peft.lora import LoRA

def llama3_70b_peft_config(peft_scheme="lora"):
    cfg = llama3_70b_pretrain_config()
    peft_cfg = default_peft_config(peft_scheme)
    cfg.peft = peft_cfg
    if isinstance(peft_scheme, str) and peft_scheme.lower() in ["lora", "dora"]:
        peft_cfg.dim = 16
        peft_cfg.alpha = 32
    return cfg

def llama3_70b_usual_config():
    cfg = llama3_70b_pretrain_config()
    cfg.peft = LoRA(target_modules=["linear_qkv"], dropout=0.1, a2a_experimental=True)
    cfg.model.tp_comm_overlap_disable_qkv = True
    cfg.model.activation_func_fp8_input_store = True
    return cfg

def llama3_70b_dora_config():
    return llama3_70b_peft_config("dora")

def llama3_70b_other_config():
    cfg = llama3_70b_pretrain_config()
    cfg.peft = default_peft_config("lora", target_modules=["linear_proj"], lora_dtype="float32")
    return cfg

def llama3_70b_sft_config():
    return llama3_70b_peft_config("none")
)";

// dim of LoRA in megatron/bridge/peft/lora.py is 32.
TEST_F(RecipeFiles, MayTrainAdapters) {
  write_bridge();
  write("src/megatron/bridge/perf_recipes/lora.py", kFineTunings);
  const auto recipe = [&](const std::string& name) {
    return imported("src/megatron/bridge/perf_recipes/lora.py:llama3_70b_" + name + "_config");
  };
  EXPECT_EQ(said_key(recipe("peft"), "training.lora_rank"), 16);
  EXPECT_EQ(said_key(recipe("peft"), "training.framework"), "megatron-lm");
  EXPECT_TRUE(said_key(recipe("peft"), "training.lora_target_modules").is_null());
  EXPECT_EQ(said_key(recipe("usual"), "training.lora_rank"), 32);
  EXPECT_EQ(said_key(recipe("usual"), "training.lora_dropout"), 0.1);
  EXPECT_EQ(said_key(recipe("usual"), "training.lora_a2a_experimental"), true);
  EXPECT_EQ(said_key(recipe("usual"), "parallelism.tp_comm_overlap_disable_qkv"), true);
  EXPECT_EQ(said_key(recipe("usual"), "training.activation_func_fp8_input_store"), true);
  EXPECT_EQ(said_key(recipe("usual"), "training.lora_target_modules"), Json{"linear_qkv"});
  EXPECT_TRUE(said_key(recipe("sft"), "training.lora_rank").is_null());
  for (const char* known : {"peft", "usual", "sft"}) {
    EXPECT_THAT(names_of_techniques(recipe(known)), Not(Contains("adapters"))) << known;
  }
  for (const char* unknown : {"dora", "other"}) {
    EXPECT_THAT(names_of_techniques(recipe(unknown)), Contains("adapters")) << unknown;
  }
}

TEST_F(RecipeFiles, MayMultiplyInFourBits) {
  write_bridge();
  const ImportedPlan plan = imported(
      "src/megatron/bridge/perf_recipes/llama3.py:llama3_70b_pretrain_64gpu_gb200_nvfp4_config");
  EXPECT_THAT(names_of_techniques(plan), IsEmpty());
  const Json training = plan.tree.json()["training"];
  EXPECT_EQ(training["fp4_format"], "e2m1");
  EXPECT_EQ(training["fp4_param_gather"], true);
  EXPECT_FALSE(training.contains("fp8_format"));
}

TEST_F(RecipeFiles, OfWhichOneMustBeNamed) {
  write_bridge();
  const std::string file = "src/megatron/bridge/perf_recipes/llama3.py";
  EXPECT_THAT(error_of(file), HasSubstr("several configurations"));
  EXPECT_THAT(error_of(file),
              HasSubstr("llama3_70b_pretrain_64gpu_gb200_bf16_config, "
                        "llama3_70b_pretrain_64gpu_mi450x_fp8mx_config, "
                        "llama3_70b_pretrain_64gpu_gb200_optimizer_config, "
                        "llama3_70b_pretrain_64gpu_gb200_aware_config, "
                        "llama3_70b_pretrain_64gpu_gb200_fp8mx_config, "
                        "llama3_70b_pretrain_64gpu_gb200_fp8mx_param_config, "
                        "llama3_70b_pretrain_64gpu_gb200_nvfp4_config, "
                        "llama3_70b_pretrain_64gpu_gb200_experts_config"));
  EXPECT_THAT(error_of(file + ":llama3_70b_pretrain_64gpu_gb200_bf16_confg"),
              HasSubstr("did you mean llama3_70b_pretrain_64gpu_gb200_bf16_config?"));
  EXPECT_EQ(imported("src/megatron/bridge/recipes/llama.py").tree.json()["model"]["preset"],
            "llama3-70b");
  EXPECT_THAT(error_of(file + ":_helper_config"), HasSubstr("gives no configuration"));
}

TEST_F(RecipeFiles, MayDivideThePipelineByALayoutOfLists) {
  write_bridge();
  write("recipe.py", R"(
from megatron.bridge.recipes.llama import llama3_70b_pretrain_config
def f_config():
    cfg = llama3_70b_pretrain_config()
    cfg.model.pipeline_model_parallel_layout = [["embedding"] + ["decoder"] * 2, ["decoder", "mtp", "loss"]]
    return cfg
)");
  EXPECT_THAT(imported("recipe.py").stage_flags,
              ElementsAre(std::pair<std::string, std::string>("--pipeline-model-parallel-layout",
                                                              "Ett|tmL")));
}

constexpr const char* kRegistry = R"(
from torchtitan.trainer import Trainer
from . import model_registry

def llama3_70b() -> Trainer.Config:
    return Trainer.Config(
        loss=CrossEntropyLoss.Config(),
        model_spec=model_registry("70B", attn_backend="sdpa"),
        optimizer=default_adamw(lr=1.5e-4),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=2 * 8192, max_context_length=8192,
                                disable_cuda_graphs=True),
        parallelism=ParallelismConfig(tensor_parallel_degree=8),
        activation_checkpoint=FullAC.Config(),
    )

def llama3_70b_float8() -> Trainer.Config:
    config = llama3_70b()
    config.model_spec = model_registry("70B", converters=[Float8LinearConverter.Config()])
    config.loss = ChunkedLossWrapper.Config()
    config.training.disable_cuda_graphs = False
    return config
)";

TEST_F(RecipeFiles, OfTorchTitanCountTokens) {
  write("torchtitan/models/llama3/config_registry.py", kRegistry);
  const ImportedPlan plan = imported("torchtitan/models/llama3/config_registry.py:llama3_70b");
  EXPECT_THAT(names_of_techniques(plan), IsEmpty());
  EXPECT_THAT(plan.unknown, IsEmpty());
  const Json tree = plan.tree.json();
  EXPECT_EQ(tree["model"], "llama3-70b");
  EXPECT_EQ(tree["training"]["micro_batch_size"], 2);
  EXPECT_EQ(tree["training"]["sequence_length"], 8192);
  EXPECT_EQ(tree["training"]["recompute"], "full");
  EXPECT_EQ(tree["parallelism"]["tensor"], 8);
}

TEST_F(RecipeFiles, OfTorchTitanSayWhatIsNotModelled) {
  write("torchtitan/models/llama3/config_registry.py", kRegistry);
  const ImportedPlan plan =
      imported("torchtitan/models/llama3/config_registry.py:llama3_70b_float8");
  EXPECT_THAT(
      names_of_techniques(plan),
      ::testing::UnorderedElementsAre("fp8", "chunked-loss", "cuda-graphs", "flex-attention"));
}

TEST_F(RecipeFiles, OfTorchTitanAreNamedByCommandsWhoseArgumentsWin) {
  write("torchtitan/models/llama3/config_registry.py", kRegistry);
  write("run.sh", R"(#!/bin/bash
MODULE=${MODULE:-"llama3"}
torchrun --nnodes 2 --nproc_per_node=8 -m torchtitan.train --module ${MODULE} --config llama3_70b \
  --parallelism.tensor_parallel_degree 4 --training.num_tokens_per_train_step=262144
)");
  const ImportedPlan plan = imported("run.sh");
  EXPECT_THAT(names_of_techniques(plan), IsEmpty());
  const Json tree = plan.tree.json();
  EXPECT_EQ(tree["parallelism"]["tensor"], 4);
  EXPECT_EQ(tree["training"]["global_batch_size"], 32);
  EXPECT_EQ(tree["cluster"]["nodes"], 2);
  EXPECT_EQ(tree["cluster"]["gpus_per_node"], 8);
}

TEST_F(RecipeFiles, OfACommandThatAreNotThereAreNamed) {
  write("run.sh",
        "torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 --config llama3_70b\n");
  EXPECT_THAT(names_of_techniques(imported("run.sh")), Contains("another-file"));
}

}  // namespace
}  // namespace sim
