#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/import_verdict.h"
#include "sim/cli/import/imported_plan.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::Json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Names = std::vector<std::string>;

/// A folder of files that name each other.
class TrainerImport : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("onerank-trainer-import-" + std::to_string(getpid()));
    fs::create_directories(folder_ / "examples/train");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  ImportedPlan imported(const std::string& text, const std::string& name = "train.sh") {
    auto plan = import_text(text, (folder_ / name).string());
    EXPECT_TRUE(plan);
    return plan ? *plan : ImportedPlan();
  }

  /// A run of run_clm.py with these arguments more.
  ImportedPlan clm(const std::string& arguments, const std::string& launcher = "torchrun") {
    return imported(launcher + " run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B " +
                    "--per_device_train_batch_size 4 --block_size 2048 " + arguments + "\n");
  }

  fs::path folder_;
};

Names named_techniques(const ImportedPlan& plan) {
  Names names;
  for (const UsedTechnique& used : plan.techniques) names.push_back(used.technique->name);
  return names;
}

constexpr const char* kZero3 = R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
                          "stage3_prefetch_bucket_size": 1e7}})";

// string_to_bool() of transformers' hf_argparser.py, and the words of PyYAML's resolver.
TEST_F(TrainerImport, KnowsTheWordsOfSwitches) {
  for (const char* word : {"1", "yes", "TRUE", "True", "t", "Y", "true"}) {
    const ImportedPlan plan =
        clm(std::string("--bf16 ") + word + " --gradient_checkpointing " + word);
    EXPECT_EQ(said_key(plan, "training.dtype"), "bf16") << word;
    EXPECT_EQ(said_key(plan, "training.recompute"), "full") << word;
  }
  for (const char* word : {"0", "no", "FALSE", "f", "N"}) {
    EXPECT_EQ(said_key(clm(std::string("--bf16 ") + word), "training.dtype"), "fp32") << word;
  }
  EXPECT_TRUE(named_techniques(clm("--torch_compile no")).empty());
  EXPECT_THROW(clm("--bf16 maybe"), estimator::UserError);
  const auto factory = [this](const std::string& lines) {
    return imported("stage: sft\ntemplate: qwen\nmodel_name_or_path: Qwen/Qwen3-8B\n" + lines,
                    "sft.yaml");
  };
  for (const char* word : {"yes", "On", "TRUE", "true"}) {
    EXPECT_EQ(said_key(factory(std::string("bf16: ") + word), "training.dtype"), "bf16") << word;
  }
  EXPECT_EQ(said_key(factory("bf16: off"), "training.dtype"), "fp32");
}

TEST_F(TrainerImport, RefusesModelsWithImages) {
  const auto of = [this](const std::string& model, const std::string& name) {
    return named_techniques(imported("stage: sft\nmodel_name_or_path: " + model + "\ntemplate: " +
                                         name + "\nfinetuning_type: full\ncutoff_len: 2048\n",
                                     "sft.yaml"));
  };
  EXPECT_EQ(of("Qwen/Qwen3-VL-4B-Instruct", "qwen3_vl_nothink"), Names{"multimodal"});
  EXPECT_EQ(of("Qwen/Qwen3-4B", "qwen3_vl_nothink"), Names{"multimodal"});
  EXPECT_EQ(of("my/Qwen2.5-VL-7B", "qwen"), Names{"multimodal"});
  EXPECT_TRUE(of("Qwen/Qwen3-4B", "qwen3").empty());
}

TEST_F(TrainerImport, AsksForMachinesThatALauncherMayName) {
  EXPECT_EQ(said_key(clm("", "deepspeed --num_gpus 8"), "cluster.nodes"), 1);
  for (const char* launcher : {"deepspeed --num_nodes $NNODES --num_gpus 8",
                               "torchrun --nproc_per_node 8 --nnodes $1",
                               "accelerate launch --num_processes 16 --num_machines $NNODES"}) {
    EXPECT_TRUE(said_key(clm("", launcher), "cluster.nodes").is_null()) << launcher;
  }
  const ImportedPlan open = clm("", "accelerate launch $(more)");
  EXPECT_TRUE(said_key(open, "cluster.nodes").is_null());
  ASSERT_EQ(open.open.size(), 1u);
  EXPECT_EQ(open.open.front().key, "$(more)");
}

TEST_F(TrainerImport, ReadsACommandWithItsDeepspeedFile) {
  write("ds_z3.json", kZero3);
  const ImportedPlan plan =
      clm("--gradient_accumulation_steps 8 --bf16 True --gradient_checkpointing "
          "--deepspeed ds_z3.json --learning_rate 1e-5 --do_train --output_dir out",
          "torchrun --nnodes 2 --nproc_per_node 8");
  EXPECT_THAT(named_techniques(plan), IsEmpty());
  EXPECT_TRUE(plan.unknown.empty());
  EXPECT_EQ(said_key(plan, "model"), "llama3.1-8b");
  EXPECT_EQ(said_key(plan, "training.framework"), "deepspeed");
  EXPECT_EQ(said_key(plan, "training.micro_batch_size"), 4);
  EXPECT_EQ(said_key(plan, "training.gradient_accumulation_steps"), 8);
  EXPECT_EQ(said_key(plan, "training.dtype"), "bf16");
  EXPECT_EQ(said_key(plan, "training.recompute"), "full");
  EXPECT_EQ(said_key(plan, "training.sequence_length"), 2048);
  EXPECT_EQ(said_key(plan, "parallelism.zero_stage"), 3);
  EXPECT_EQ(said_key(plan, "parallelism.reduce_bucket_size"), "auto");
  EXPECT_EQ(said_key(plan, "parallelism.stage3_prefetch_bucket_size"), 10'000'000);
  EXPECT_EQ(said_key(plan, "cluster.nodes"), 2);
  EXPECT_EQ(said_key(plan, "cluster.gpus_per_node"), 8);
}

TEST_F(TrainerImport, FindsFilesFromTheFoldersAround) {
  write("examples/ds.json", kZero3);
  const std::string text = R"(model_name_or_path: Qwen/Qwen3-4B-Instruct-2507
stage: sft
finetuning_type: full
template: qwen3
deepspeed: examples/ds.json
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
bf16: true
resume_from_checkpoint: null
)";
  const ImportedPlan plan = imported(text, "examples/train/full.yaml");
  EXPECT_EQ(plan.program, "LLaMA-Factory");
  EXPECT_THAT(named_techniques(plan), IsEmpty());
  EXPECT_EQ(said_key(plan, "parallelism.zero_stage"), 3);
  EXPECT_EQ(said_key(plan, "training.sequence_length"), 2048);  // the default of cutoff_len
  EXPECT_EQ(said_key(plan, "training.recompute"), "full");      // and it always recomputes
  const ImportedPlan lost = imported(text, "full.yaml");
  EXPECT_THAT(named_techniques(lost), IsEmpty());  // the path begins in the same folder
  write("examples/ds.json", "{}");
  EXPECT_EQ(named_techniques(imported(text, "full.yaml")), Names{"another-file"});
}

TEST_F(TrainerImport, TellsTheTypesOfParametersAndComputation) {
  const auto types = [&](const std::string& arguments) {
    const ImportedPlan plan = clm(arguments);
    return std::pair(said_key(plan, "training.dtype"), said_key(plan, "training.mixed_precision"));
  };
  EXPECT_EQ(types("--bf16"), std::pair(Json("bf16"), Json()));
  EXPECT_EQ(types("--fp16 True --bf16 False"), std::pair(Json("fp16"), Json()));
  EXPECT_EQ(types("--bf16 --torch_dtype bfloat16"), std::pair(Json("bf16"), Json(false)));
  EXPECT_EQ(types("--torch_dtype bfloat16"), std::pair(Json("bf16"), Json(false)));
  EXPECT_EQ(types(""), std::pair(Json("fp32"), Json()));
  // accelerate makes fp32 parameters of any for FSDP2
  EXPECT_EQ(types("--bf16 --fsdp full_shard --torch_dtype bfloat16"),
            std::pair(Json("bf16"), Json()));
}

TEST_F(TrainerImport, TellsTheVersionsAndWaysOfFsdp) {
  const ImportedPlan second = clm("--fsdp \"full_shard auto_wrap\" --bf16");
  EXPECT_EQ(said_key(second, "parallelism.zero_stage"), 3);
  EXPECT_THAT(named_techniques(second), IsEmpty());
  EXPECT_EQ(said_key(clm("--fsdp \"shard_grad_op auto_wrap\""), "parallelism.zero_stage"), 2);
  EXPECT_EQ(named_techniques(clm("--fsdp \"full_shard offload\"")), Names{"fsdp-offload"});
  EXPECT_EQ(named_techniques(clm("--fsdp hybrid_shard")), Names{"hsdp"});
  // An argument that only transformers 4 has.
  EXPECT_EQ(named_techniques(clm("--fsdp full_shard --fsdp_transformer_layer_cls_to_wrap X")),
            Names{"fsdp1"});
  EXPECT_EQ(named_techniques(clm("--fsdp full_shard --fsdp_config '{\"fsdp_version\": 1}'")),
            Names{"fsdp1"});
  write("fsdp.json", R"({"version": 2, "reshard_after_forward": false})");
  const ImportedPlan kept = clm("--fsdp full_shard --fsdp_config fsdp.json");
  EXPECT_THAT(named_techniques(kept), IsEmpty());
  EXPECT_EQ(said_key(kept, "parallelism.zero_stage"), 2);
}

TEST_F(TrainerImport, ReadsWhatAccelerateLaunches) {
  write("fsdp2.yaml", R"(distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
)");
  const ImportedPlan plan = clm("", "accelerate launch --config_file fsdp2.yaml");
  EXPECT_THAT(named_techniques(plan), IsEmpty());
  EXPECT_EQ(said_key(plan, "parallelism.zero_stage"), 3);
  EXPECT_EQ(said_key(plan, "training.dtype"), "bf16");
  EXPECT_EQ(said_key(plan, "cluster.nodes"), 2);
  EXPECT_EQ(said_key(plan, "cluster.gpus_per_node"), 8);
  const ImportedPlan flags = clm(
      "",
      "accelerate launch --num_processes 4 --use_deepspeed --zero_stage 2 --mixed_precision fp16");
  EXPECT_EQ(said_key(flags, "training.framework"), "deepspeed");
  EXPECT_EQ(said_key(flags, "parallelism.zero_stage"), 2);
  EXPECT_EQ(said_key(flags, "training.dtype"), "fp16");
  EXPECT_EQ(said_key(flags, "cluster.gpus_per_node"), 4);
  EXPECT_THAT(named_techniques(clm("", "accelerate launch --config_file none.yaml")),
              Contains("another-file"));
}

TEST_F(TrainerImport, CountsTheGpusOfEachLauncher) {
  const auto gpus = [&](const std::string& launcher) {
    const ImportedPlan plan = clm("--bf16", launcher);
    return std::pair(said_key(plan, "cluster.nodes"), said_key(plan, "cluster.gpus_per_node"));
  };
  EXPECT_EQ(gpus("python"), std::pair(Json(1), Json(1)));
  EXPECT_EQ(gpus("deepspeed --num_gpus 4"), std::pair(Json(1), Json(4)));
  EXPECT_EQ(gpus("CUDA_VISIBLE_DEVICES=0,1 accelerate launch"), std::pair(Json(1), Json(2)));
  // torchrun's --nproc-per-node is 1 where nothing is said.
  EXPECT_EQ(gpus("CUDA_VISIBLE_DEVICES=0,1 torchrun"), std::pair(Json(1), Json(1)));
  EXPECT_EQ(gpus("python -m torch.distributed.run --nnodes=4 --nproc_per_node=8"),
            std::pair(Json(4), Json(8)));
  EXPECT_EQ(gpus("#SBATCH --nodes=3\n#SBATCH --gpus-per-node=8\n#SBATCH --ntasks-per-node=1\n"
                 "srun torchrun --nproc-per-node=gpu"),
            std::pair(Json(3), Json(8)));
}

TEST_F(TrainerImport, ReadsAdaptersWhereTheyAreTrained) {
  const ImportedPlan peft = clm("--use_peft --lora_r 32 --lora_target_modules q_proj,o_proj");
  EXPECT_THAT(named_techniques(peft), IsEmpty());
  EXPECT_EQ(said_key(peft, "training.lora_rank"), 32);
  EXPECT_EQ(said_key(peft, "training.lora_target_modules"), (Json{"q_proj", "o_proj"}));
  EXPECT_TRUE(said_key(clm("--lora_r 16 --use_peft False"), "training.lora_rank").is_null());

  const std::string factory =
      "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\nbf16: true\n"
      "finetuning_type: lora\ntemplate: qwen3\n";
  const ImportedPlan plan = imported(factory, "lora.yaml");
  EXPECT_THAT(named_techniques(plan), IsEmpty());
  EXPECT_TRUE(plan.unknown.empty());
  EXPECT_EQ(said_key(plan, "training.lora_rank"), 8);  // its defaults
  EXPECT_EQ(said_key(plan, "training.lora_target_modules"), Json{"all-linear"});
  const auto techniques = [&](const std::string& more) {
    return named_techniques(imported(factory + more, "lora.yaml"));
  };
  const ImportedPlan listed = imported(factory + "lora_target: [q_proj, down_proj]\n", "lora.yaml");
  EXPECT_EQ(said_key(listed, "training.lora_target_modules"), (Json{"q_proj", "down_proj"}));
  EXPECT_EQ(techniques("quantization_bit: 4\n"), Names{"quantized-weights"});
  EXPECT_EQ(techniques("additional_target: embed_tokens\n"), Names{"adapters"});
  write("examples/ds.json", kZero3);
  EXPECT_EQ(techniques("deepspeed: examples/ds.json\n"), Names{"adapters"});
  const std::string experts =
      "model_name_or_path: Qwen/Qwen3-30B-A3B\nstage: sft\nbf16: true\n"
      "finetuning_type: lora\ntemplate: qwen3\n";
  EXPECT_EQ(named_techniques(imported(experts, "moe.yaml")), Names{"adapters"});
}

TEST_F(TrainerImport, TakesAModelOfNoExpertsForDense) {
  const auto techniques = [&](const std::string& experts) {
    fs::create_directories(folder_ / "some/dense");
    write("some/dense/config.json",
          R"({"model_type": "qwen3_moe", "hidden_size": 512,
      "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8, "num_experts": )" +
              experts + R"(, "moe_intermediate_size": 256, "vocab_size": 1000})");
    return named_techniques(
        imported("torchrun run_clm.py --model_name_or_path some/dense --bf16 "
                 "--per_device_train_batch_size 4 --use_peft --lora_r 8\n"));
  };
  EXPECT_EQ(techniques("0"), Names{});
  EXPECT_EQ(techniques("4"), Names{"adapters"});
}

TEST_F(TrainerImport, NamesWhatIsNotModelled) {
  EXPECT_EQ(named_techniques(clm("--use_peft --use_dora true")), Names{"adapters"});
  EXPECT_EQ(named_techniques(clm("--optim adamw_torch_fused")), Names{});
  EXPECT_EQ(named_techniques(clm("--optim adamw_torch")), Names{"optimizer-kernels"});
  EXPECT_EQ(named_techniques(clm("--optim adamw_bnb_8bit")), Names{"optimizer"});
  EXPECT_EQ(named_techniques(clm("--use_liger_kernel true")), Names{"liger"});
  EXPECT_EQ(named_techniques(clm("--attn_implementation eager")), Names{"eager-attention"});
  EXPECT_EQ(named_techniques(clm("--tf32 True")), Names{"tf32"});
  EXPECT_EQ(named_techniques(clm("--bf16 --tf32 True")), Names{});
  EXPECT_EQ(said_key(clm("--attn_implementation flash_attention_2"), "training.attention"),
            "flash");
  const ImportedPlan odd = clm("--no_such_argument 3");
  ASSERT_EQ(odd.unknown.size(), 1u);
  EXPECT_EQ(odd.unknown.front().shown(), "--no_such_argument");
}

// --no_x of HfArgumentParser denies a switch that is on by default; trl's SFTConfig has other
// defaults than transformers.
TEST_F(TrainerImport, KnowsTheDefaultsOfTrl) {
  const std::string start =
      "accelerate launch trl/scripts/sft.py --model_name_or_path "
      "Qwen/Qwen2.5-0.5B --dataset_name x --learning_rate 1e-5 ";
  const ImportedPlan plan = imported(start + "--loss_type nll\n");
  EXPECT_EQ(plan.program, "trl");
  EXPECT_THAT(named_techniques(plan), IsEmpty());
  EXPECT_EQ(said_key(plan, "training.sequence_length"), 1024);
  EXPECT_EQ(said_key(plan, "training.micro_batch_size"), 8);
  EXPECT_EQ(said_key(plan, "training.recompute"), "full");
  EXPECT_EQ(said_key(plan, "training.dtype"), "bf16");
  EXPECT_EQ(named_techniques(imported(start + "\n")), Names{"chunked-loss"});
  const ImportedPlan other = imported(start + "--no_gradient_checkpointing --max_length 4096\n");
  EXPECT_TRUE(said_key(other, "training.recompute").is_null());
  EXPECT_EQ(said_key(other, "training.sequence_length"), 4096);
}

TEST_F(TrainerImport, ReadsAxolotl) {
  const std::string text = R"(base_model: NousResearch/Meta-Llama-3.1-8B
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
sequence_len: 8192
sample_packing: false
gradient_accumulation_steps: 4
micro_batch_size: 2
optimizer: adamw_torch_fused
learning_rate: 2e-5
bf16: auto
gradient_checkpointing: true
attn_implementation: flash_attention_2
fsdp_version: 2
fsdp_config:
  offload_params: false
  transformer_layer_cls_to_wrap: LlamaDecoderLayer
  reshard_after_forward: true
wandb_project:
)";
  const ImportedPlan plan = imported(text, "fft.yaml");
  EXPECT_EQ(plan.program, "axolotl");
  EXPECT_THAT(named_techniques(plan), IsEmpty());
  EXPECT_TRUE(plan.unknown.empty());
  EXPECT_EQ(said_key(plan, "training.micro_batch_size"), 2);
  EXPECT_EQ(said_key(plan, "training.sequence_length"), 8192);
  EXPECT_EQ(said_key(plan, "training.attention"), "flash");
  EXPECT_EQ(said_key(plan, "parallelism.zero_stage"), 3);
  EXPECT_EQ(named_techniques(imported(text + "adapter: qlora\nload_in_4bit: true\n", "fft.yaml")),
            Names{"quantized-weights"});
  // A command may name the file and change it.
  write("fft.yaml", text);
  const ImportedPlan command = imported("axolotl train fft.yaml --micro_batch_size 1\n");
  EXPECT_EQ(said_key(command, "training.micro_batch_size"), 1);
  EXPECT_EQ(said_key(command, "training.sequence_length"), 8192);
  const ImportedPlan lost = imported("# a file that is elsewhere\naxolotl train other.yaml\n");
  ASSERT_EQ(named_techniques(lost), Names{"another-file"});
  EXPECT_EQ(lost.techniques.front().uses.front().place, "train.sh:2");
}

// normalize_config() in utils/config/__init__.py and _configure_embedding_dtypes() in
// loaders/model.py of axolotl.
TEST_F(TrainerImport, LoadsAxolotlsModelIn16Bits) {
  const auto of = [&](const std::string& keys) {
    return imported(
        "base_model: llama3-8b\nsequence_len: 2048\nmicro_batch_size: 1\n"
        "optimizer: adamw_torch_fused\ngradient_checkpointing: true\n" +
            keys,
        "fft.yaml");
  };
  const ImportedPlan flash = of("bf16: true\nflash_attention: true\n");
  EXPECT_EQ(said_key(flash, "training.dtype"), "bf16");
  EXPECT_EQ(said_key(flash, "training.mixed_precision"), false);
  EXPECT_THAT(flash.notes, Not(Contains(HasSubstr("fp32"))));
  const ImportedPlan sdpa = of("bf16: true\nsdp_attention: true\n");
  EXPECT_EQ(said_key(sdpa, "training.mixed_precision"), false);
  EXPECT_THAT(sdpa.notes, Contains(HasSubstr("norms, embedding and head are in fp32")));
  EXPECT_TRUE(said_key(of("flash_attention: true\n"), "training.mixed_precision").is_null());
  EXPECT_EQ(said_key(of("flash_attention: true\n"), "training.dtype"), "fp32");
}

// TrainingArguments says the precision where the launcher says none.
TEST_F(TrainerImport, TakesThePrecisionOfTheTrainerBeforeTheLaunchers) {
  const std::string launch = "accelerate launch --num_processes 8 ";
  EXPECT_EQ(said_key(clm("--torch_dtype bfloat16", launch + "--multi_gpu"), "training.dtype"),
            "bf16");
  EXPECT_EQ(said_key(clm("", launch + "--multi_gpu"), "training.dtype"), "fp32");
  EXPECT_EQ(said_key(clm("", launch + "--multi_gpu --mixed_precision bf16"), "training.dtype"),
            "bf16");
  const std::string fsdp = launch + "--use_fsdp --fsdp_version 2 --mixed_precision bf16 ";
  EXPECT_EQ(named_techniques(clm("", fsdp + "--fsdp_auto_wrap_policy NO_WRAP")),
            Names{"fsdp-units"});
  EXPECT_THAT(named_techniques(clm("", fsdp + "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP")),
              IsEmpty());
  EXPECT_EQ(named_techniques(clm("", launch + "--parallelism_config_sp_size 4")),
            Names{"trainer-parallelism"});
}

TEST_F(TrainerImport, NamesProgramsThatTrainOtherwise) {
  const std::string arguments =
      " --model_name_or_path gpt2 --per_device_train_batch_size 1 "
      "--of_its_own 2\n";
  const auto of = [&](const std::string& command) {
    const ImportedPlan plan = imported(command + arguments);
    EXPECT_TRUE(plan.unknown.empty());
    return named_techniques(plan);
  };
  EXPECT_EQ(of("accelerate launch examples/scripts/dpo.py"), Names{"preference-training"});
  EXPECT_EQ(of("trl grpo"), Names{"reinforcement-learning"});
  EXPECT_EQ(of("deepspeed fastchat/train/train_lora.py"), Names{"adapters"});
  EXPECT_EQ(of("python run_mlm.py"), Names{"encoder-decoder"});
  EXPECT_EQ(named_techniques(clm("--beta 0.1 --max_prompt_length 512")),
            Names{"preference-training"});
}

TEST_F(TrainerImport, AsksForTheShapeOfAModelThatItDoesNotKnow) {
  const std::string command =
      "torchrun train.py --model_name_or_path some/model-7b "
      "--per_device_train_batch_size 4 --bf16\n";
  const ImportedPlan plan = imported(command);
  try {
    check_complete(plan, plan.tree.json(), true);
    FAIL();
  } catch (const estimator::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the shape of the model some/model-7b"));
    EXPECT_THAT(error.what(), HasSubstr("--seq N"));
  }
  fs::create_directories(folder_ / "some/model-7b");
  write("some/model-7b/config.json", R"({"model_type": "llama", "hidden_size": 512,
      "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000,
      "intermediate_size": 1024, "max_position_embeddings": 2048})");
  EXPECT_EQ(said_key(imported(command), "model.num_layers"), 3);
  // transformers reads a folder before it asks the hub for a model of this name.
  fs::copy(folder_ / "some/model-7b", folder_ / "some/gpt2");
  EXPECT_EQ(said_key(imported("torchrun run_clm.py --model_name_or_path some/gpt2 --bf16 "
                              "--per_device_train_batch_size 4\n"),
                     "model.num_layers"),
            3);
}

// As in a README: "torchrun --master_port=<your_port> train.py", where a shell takes train.py for a
// file to write.
TEST_F(TrainerImport, ReadsArgumentsWithoutAProgram) {
  const ImportedPlan plan = imported(
      "torchrun --nproc_per_node=4 --master_port=<your_port> train.py "
      "--model_name_or_path a/b --per_device_train_batch_size 4 --bf16 True\n");
  EXPECT_EQ(plan.program, "transformers");
  EXPECT_EQ(said_key(plan, "training.micro_batch_size"), 4);
}

TEST_F(TrainerImport, LeavesOtherProgramsAlone) {
  EXPECT_THROW(import_text("python main.py --lr 0.1 --epochs 3\n", (folder_ / "a.sh").string()),
               estimator::UserError);
  const ImportedPlan megatron =
      imported("torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --bf16 --seq-length 8\n");
  EXPECT_EQ(megatron.program, "Megatron-LM");
}

}  // namespace
}  // namespace sim
