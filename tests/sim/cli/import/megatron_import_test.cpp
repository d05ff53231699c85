#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <array>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/import_verdict.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kScript = R"(#!/bin/bash
#SBATCH --nodes=4 --gres=gpu:h100:8
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
TP=${TP:-2}
MODEL=(
  --num-layers 24
  --hidden-size 2048 --num-attention-heads 16
  --seq-length 4096 --max-position-embeddings 4096
  --vocab-size 50000
)
torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py ${MODEL[@]} \
  --tensor-model-parallel-size $TP --use-distributed-optimizer \
  --micro-batch-size 2 --bf16 --lr 1e-4 --clip-grad=1.0 --data-path $1
)";

class MegatronImport : public OnerankProgram {
 protected:
  static ImportedPlan imported(const std::string& text, const std::string& path = "train.sh") {
    auto plan = import_text(text, path);
    EXPECT_TRUE(plan);
    return plan ? *plan : ImportedPlan();
  }
  static Json tree(const std::string& text) { return imported(text).tree.json(); }
};

// parse_args of megatron/training/arguments.py @d98e8a64 has none of them.
TEST_F(MegatronImport, IsNotToldByFlagsThatOnlyPlansHave) {
  try {
    import_text(
        "torchrun --nproc_per_node 8 finetune.py --dtype bfloat16 --data-parallel-size 8 "
        "--attention flash --fp32 --recompute full\n",
        "train.sh");
    FAIL() << "taken for Megatron-LM";
  } catch (const estimator::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no command in it has arguments of Megatron-LM"));
  }
  EXPECT_TRUE(
      import_text("torchrun --nproc_per_node 8 finetune.py --bf16 --micro-batch-size 1 "
                  "--recompute-granularity full\n",
                  "train.sh"));
}

// examples/post_training/modelopt/finetune.py
TEST_F(MegatronImport, TellsModelOptimizerByItsFolderAndItsArguments) {
  const auto techniques = [](const std::string& program, const std::string& more) {
    return imported("torchrun " + program + " --num-layers 2 --hidden-size 64 --bf16 " + more +
                    "\n")
        .techniques;
  };
  EXPECT_TRUE(techniques("finetune.py", "").empty());
  const auto by_argument = techniques("finetune.py", "--finetune-hf-dataset a/b");
  ASSERT_FALSE(by_argument.empty());
  EXPECT_EQ(by_argument.front().technique->name, "model-optimizer");
  EXPECT_FALSE(techniques("examples/post_training/modelopt/finetune.py", "").empty());
}

TEST_F(MegatronImport, ReadsAScriptWithItsCluster) {
  const Json plan = tree(kScript);
  EXPECT_EQ(plan["model"]["num_layers"], 24);
  EXPECT_EQ(plan["model"]["vocab_size"], 50000);
  EXPECT_EQ(plan["parallelism"]["tensor"], 2);
  EXPECT_EQ(plan["parallelism"]["zero_stage"], 1);
  EXPECT_EQ(plan["training"]["dtype"], "bf16");
  EXPECT_EQ(plan["cluster"], Json({{"gpu", "h100"}, {"gpus_per_node", 8}, {"nodes", 4}}));
  EXPECT_EQ(plan["memory"]["allocator"], "expandable_segments:True");
}

// megatron/core/tokenizers/text/libraries/null_tokenizer.py of core 0.18.
TEST_F(MegatronImport, TakesTheVocabularyOfTheNullTokenizerAsItIsSaid) {
  const auto words = [](const std::string& arguments) {
    return tree("pretrain_gpt.py --num-layers 2 --hidden-size 64 " + arguments +
                "\n")["model"]["vocab_size"];
  };
  EXPECT_EQ(words("--tokenizer-type NullTokenizer --vocab-size 32000"), 32000);
  EXPECT_EQ(words("--vocab-size 32000"), 32000);
  EXPECT_EQ(words("--tokenizer-type NullTokenizer --vocab-size 32000 --padded-vocab-size 32256"),
            32256);
}

// With torchrun a task is a machine's launcher, and with srun alone it is a rank.
TEST_F(MegatronImport, TellsTasksFromGpus) {
  const auto cluster = [](const std::string& directives, const std::string& launcher) {
    return imported("#!/bin/bash\n#SBATCH --nodes=4 " + directives + "\n" + launcher +
                    " pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4\n");
  };
  const auto of_node = [&](const std::string& directives, const std::string& launcher) {
    return said_key(cluster(directives, launcher), "cluster.gpus_per_node");
  };
  const std::string one_task = "--gres=gpu:h100:8 --ntasks-per-node=1";
  EXPECT_EQ(of_node(one_task, "srun torchrun --nproc_per_node $SLURM_GPUS_ON_NODE"), 8);
  EXPECT_EQ(of_node(one_task, "srun torchrun --nproc_per_node gpu"), 8);
  EXPECT_EQ(of_node(one_task, "srun torchrun --nproc_per_node $GPUS"), 8);
  EXPECT_EQ(of_node(one_task, "srun torchrun --nproc_per_node 4"), 4);
  EXPECT_EQ(of_node("--ntasks-per-node=8", "srun python"), 8);
  const ImportedPlan unknown = cluster("--ntasks-per-node=1", "srun torchrun --nproc_per_node $G");
  EXPECT_TRUE(said_key(unknown, "cluster.gpus_per_node").is_null());
  EXPECT_THAT(unknown.notes, testing::Contains(HasSubstr("give --gpus-per-node")));
}

constexpr const char* kShape =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 ";

// Words that nobody can decide are no values of the flag before them, and none is left out.
TEST_F(MegatronImport, RefusesWordsThatMayHoldArguments) {
  const auto of = [](const std::string& lines, const std::string& end) {
    return imported(lines + "\ntorchrun pretrain_gpt.py " + kShape + end + "\n");
  };
  const std::string test = "A='--tensor-model-parallel-size 4'; [ -f /big ] && A=\"$A --fp16\"";
  for (const char* end : {"--bf16 $A", "--seed 1 $A", "$A --bf16"}) {
    const ImportedPlan plan = of(test, end);
    ASSERT_EQ(plan.open.size(), 1u) << end;
    EXPECT_EQ(plan.open.front().key, "$A");
    EXPECT_EQ(plan.open.front().place, "train.sh:2");
  }
  EXPECT_EQ(said_key(of(test, "--bf16 $A"), "training.dtype"), "bf16");
  EXPECT_EQ(said_key(of(test, "--seed 7 $A"), "training.seed"), 7);
  EXPECT_EQ(of("", "--bf16 $1").open.size(), 1u);
  EXPECT_EQ(of("", "--seed 7 $(more)").open.size(), 1u);
  EXPECT_TRUE(of("", "--seed $1 --data-path $1 --bf16 $NOBODY_SETS").open.empty());
  EXPECT_EQ(of("", "--seed $1").unset.size(), 1u);
  const ImportedPlan plan = of(test, "--bf16 $A");
  try {
    accept(plan, {});
    FAIL() << "$A was left out";
  } catch (const estimator::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("$A may hold arguments"));
    EXPECT_THAT(error.what(), HasSubstr("--script-arguments"));
  }
  EXPECT_THAT(accept(plan, {"$A"}), testing::Contains(HasSubstr("arguments that $A may hold")));
}

TEST_F(MegatronImport, RefusesAValueOfASwitch) {
  const auto of = [](const std::string& end) {
    return imported("pretrain_gpt.py " + std::string(kShape) + end + "\n");
  };
  EXPECT_EQ(said_key(of("--bf16 2>&1 | tee log"), "training.dtype"), "bf16");
  EXPECT_THROW(of("--bf16 2"), estimator::UserError);
}

TEST_F(MegatronImport, TakesWhatIsPrintedForNoTraining) {
  const std::string one = std::string("pretrain_gpt.py ") + kShape;
  const ImportedPlan plan =
      imported("echo torchrun " + one + "--seed 1 >> log\n" + one + "--seed 2\n");
  EXPECT_EQ(said_key(plan, "training.seed"), 2);
  EXPECT_THAT(plan.notes, testing::Not(testing::Contains(testing::HasSubstr("more training"))));
}

TEST_F(MegatronImport, LetsRecomputedActivationsWin) {
  const std::string shape = std::string("pretrain_gpt.py ") + kShape;
  EXPECT_EQ(said_key(imported(shape + "--recompute-activations --recompute-granularity full\n"),
                     "training.recompute"),
            "selective");
}

TEST_F(MegatronImport, NamesTheTrainingsThatItDoesNotRead) {
  const std::string one = std::string("pretrain_gpt.py ") + kShape;
  const ImportedPlan two = imported(one + "--seed 1\n" + one + "--seed 2 --bf16\n");
  EXPECT_EQ(said_key(two, "training.seed"), 2);
  EXPECT_THAT(
      two.notes,
      testing::Contains("train.sh has 1 more training, in line 1; this is the one of line 2"));
  EXPECT_EQ(two.modelled.front().place, "train.sh:2");
  const ImportedPlan loop =
      imported("for TP in 1 2; do\n" + one + "--tensor-model-parallel-size $TP\ndone\n");
  EXPECT_THAT(loop.notes,
              testing::Contains("train.sh:1: of a loop the first round is read, with TP = 1"));
  EXPECT_TRUE(imported("for D in a b; do\nmkdir $D\ndone\n" + one + "\n").notes.empty());
}

// DeepSpeedExamples/benchmarks/deepcompile/run.sh has flags of plans, and trains by itself.
TEST_F(MegatronImport, IsNotToldByFlagsThatMegatronHasNot) {
  const std::string flags = "--zero-stage 3 --gradient-accumulation-steps 1 --fsdp\n";
  EXPECT_FALSE(import_text("python bench.py " + flags, "list"));
  EXPECT_TRUE(import_text("python bench.py " + std::string(kShape), "list"));
  EXPECT_FALSE(import_text("accelerate launch bench.py " + std::string(kShape), "list"));
}

TEST_F(MegatronImport, ReadsNumbersAsPythonDoes) {
  EXPECT_EQ(said_key(imported("pretrain_gpt.py " + std::string(kShape) +
                              "--seq-length 2_048 --train-samples 1_000\n"),
                     "training.tokens"),
            2'048'000);
}

// deepspeed's arguments in megatron/arguments.py of Megatron-DeepSpeed.
TEST_F(MegatronImport, ReadsMegatronDeepspeed) {
  const auto of = [](const std::string& end) {
    return imported("deepspeed pretrain_gpt.py " + std::string(kShape) + "--data-impl mmap " +
                    "--deepspeed --deepspeed_config ds.json --checkpoint-activations " +
                    "--deepspeed-activation-checkpointing " + end + "\n");
  };
  const ImportedPlan plan = of("--zero-stage 1");
  EXPECT_TRUE(plan.unknown.empty());
  EXPECT_TRUE(plan.techniques.empty());
  EXPECT_EQ(said_key(plan, "training.framework"), "megatron-deepspeed");
  EXPECT_EQ(said_key(plan, "training.recompute"), "full");
  EXPECT_EQ(said_key(plan, "parallelism.zero_stage"), 1);
  const auto technique = [&](const std::string& end) {
    const ImportedPlan other = of(end);
    return other.techniques.size() == 1 ? other.techniques[0].technique->name : "";
  };
  EXPECT_EQ(technique("--zero-stage 3"), "deepspeed-zero");
  EXPECT_EQ(technique(""), "another-file");
}

TEST_F(MegatronImport, TakesTheArgumentsOfAScript) {
  const std::string text = std::string("[ $1 = big ] && A='--tp 4 --bf16'\npretrain_gpt.py ") +
                           kShape + "--pipeline-model-parallel-size $2 $A\n";
  const auto plan = import_text(text, "train.sh", "big '2'");
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->open.empty());
  EXPECT_EQ(said_key(*plan, "parallelism.pipeline"), 2);
  EXPECT_EQ(said_key(*plan, "training.dtype"), "bf16");
  EXPECT_THROW(import_text("{\"model\": \"llama3-8b\"}", "plan.json", "big"), estimator::UserError);
}

// A launcher with no word for it has one machine, and one that nobody can read has a number of them
// that is asked for.
TEST_F(MegatronImport, AsksForMachinesThatALauncherMayName) {
  const auto nodes = [](const std::string& launcher, const std::string& before = "") {
    return said_key(imported("#!/bin/bash\n" + before + launcher + " pretrain_gpt.py " + kShape),
                    "cluster.nodes");
  };
  EXPECT_EQ(nodes("torchrun --nproc_per_node 8"), 1);
  EXPECT_EQ(nodes("torchrun --nproc_per_node $GPUS --master_addr $ADDRESS"), 1);
  EXPECT_EQ(nodes("torchrun --nproc_per_node 8 --nnodes 2"), 2);
  for (const char* words : {"--nnodes $NNODES", "--nnodes $1", "--nnodes=${WORLD_SIZE}", "$ALL"}) {
    EXPECT_TRUE(nodes(std::string("torchrun --nproc_per_node 8 ") + words).is_null()) << words;
  }
  EXPECT_TRUE(
      nodes("srun torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES", "#SBATCH --nodes=2-4\n")
          .is_null());
}

// srun's and sbatch's -N are machines, and mpirun's are ranks of a machine; torchrun starts one
// rank unless it is told how many.
TEST_F(MegatronImport, KnowsTheWorldsOfLaunchers) {
  const auto world = [](const std::string& directives, const std::string& launcher) {
    const ImportedPlan plan =
        imported("#!/bin/bash\n" + directives + launcher +
                 " pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4\n");
    return std::pair{said_key(plan, "cluster.nodes"), said_key(plan, "cluster.gpus_per_node")};
  };
  using Said = std::pair<Json, Json>;
  EXPECT_EQ(world("", "mpirun -np 16 -N 8 python"), Said(2, 8));
  EXPECT_EQ(world("", "/usr/bin/mpiexec -n 16 -N 4 python"), Said(4, 4));
  EXPECT_EQ(world("", "srun -N 2 --ntasks-per-node 4 python"), Said(2, 4));
  EXPECT_EQ(world("#SBATCH --nodes=2 --ntasks=8 --gpus-per-task=1\n", "srun python"), Said(2, 4));
  EXPECT_EQ(world("#SBATCH -N 4 --gpus=16\n", "srun torchrun --nproc_per_node $G"), Said(4, 4));
  EXPECT_EQ(world("", "torchrun"), Said(1, 1));
  EXPECT_EQ(world("", "torchrun --nnodes 2 --nproc-per-node=8"), Said(2, 8));
  EXPECT_EQ(world("", "torchrun $ARGS"), Said(nullptr, nullptr));
  EXPECT_THAT(
      imported("torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4\n")
          .notes,
      testing::Contains(HasSubstr("one rank on each machine")));
}

// validate_args() in megatron/training/arguments.py: only bf16 turns sums in fp32 on, and rotary
// positions of other types have no fused kernel.
TEST_F(MegatronImport, KnowsWhatMegatronChangesByItself) {
  const auto of = [](const std::string& arguments) {
    return tree("--num-layers 2 --hidden-size 64 --num-attention-heads 4 " + arguments)["training"];
  };
  EXPECT_EQ(of("--fp16")["grad_reduce_in_bf16"], true);
  EXPECT_FALSE(of("--fp16 --accumulate-allreduce-grads-in-fp32").contains("grad_reduce_in_bf16"));
  EXPECT_FALSE(of("--bf16").contains("grad_reduce_in_bf16"));
  EXPECT_EQ(of("--bf16 --position-embedding-type yarn")["rope_fusion"], false);
  EXPECT_FALSE(of("--bf16 --position-embedding-type rope").contains("rope_fusion"));
}

// store_true in arguments.py, whose value goes over that of TransformerConfig; only
// --apply-query-key-layer-scaling turns it on, too. TransformerEngine does not read it.
TEST_F(MegatronImport, HasASoftmaxInFp32OnlyWhereAnArgumentSaysSo) {
  const auto of = [](const std::string& arguments) {
    const Json training =
        tree("--num-layers 2 --hidden-size 64 --num-attention-heads 4 " + arguments)["training"];
    return training.value("attention_softmax_in_fp32", Json());
  };
  EXPECT_EQ(of("--transformer-impl local"), false);
  EXPECT_EQ(of("--transformer-impl local --attention-softmax-in-fp32"), true);
  EXPECT_EQ(of("--transformer-impl local --apply-query-key-layer-scaling"), nullptr);
  EXPECT_EQ(of("--transformer-impl transformer_engine"), nullptr);
}

// input_jitter of TopKRouter keeps its noise until the backward (router.py).
TEST_F(MegatronImport, RefusesNoiseOnTheInputsOfRouters) {
  const ImportedPlan plan = imported(
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --num-experts 4 "
      "--moe-input-jitter-eps 1e-2");
  ASSERT_EQ(plan.techniques.size(), 1u);
  EXPECT_EQ(plan.techniques.front().technique->name, "router-jitter");
}

// The tokens before a query; a plan's window has its own one, too.
TEST_F(MegatronImport, ReadsWhatGptOssHas) {
  const auto of = [](const std::string& words) {
    return imported("torchrun pretrain_gpt.py " + std::string(kShape) + words);
  };
  const ImportedPlan plan =
      of(" --window-size 127,0 --window-attn-skip-freq 2 --softmax-type learnable --quick-geglu "
         "--activation-func-clamp-value 7.0 --glu-linear-offset 1.0");
  EXPECT_EQ(said_key(plan, "model.sliding_window"), 128);
  EXPECT_EQ(said_key(plan, "model.softmax_type"), "learnable");
  EXPECT_EQ(said_key(plan, "model.activation"), "quick_geglu");
  EXPECT_EQ(said_key(plan, "model.activation_func_clamp_value"), 7);
  EXPECT_EQ(said_key(plan, "model.glu_linear_offset"), 1);
  EXPECT_TRUE(plan.techniques.empty());
  EXPECT_EQ(of(" --softmax-type off-by-one").techniques.size(), 1U);
}

TEST_F(MegatronImport, LeavesOutARecipeOfEightBitsWithoutThem) {
  const std::string few = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  EXPECT_FALSE(tree(few + "--fp8-recipe tensorwise")["training"].contains("fp8_recipe"));
  EXPECT_EQ(tree(few + "--fp8-format hybrid --fp8-recipe tensorwise")["training"]["fp8_recipe"],
            "tensorwise");
}

TEST_F(MegatronImport, NamesThePlaceOfEachKey) {
  const ImportedPlan plan = imported(kScript);
  EXPECT_EQ(plan.modelled.front().key, "num-layers");
  EXPECT_EQ(plan.modelled.front().place, "train.sh:6");
  EXPECT_EQ(plan.without_effect.size(), 3u);  // lr, clip-grad, data-path
}

TEST_F(MegatronImport, TakesMegatronsDefaultsWhereTheyAreNotThePlans) {
  const std::string few = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  EXPECT_EQ(tree(few)["training"]["dtype"], "fp32");
  EXPECT_FALSE(tree(few + "--num-query-groups 2")["model"].contains("num_query_groups"));
  EXPECT_EQ(tree(few + "--group-query-attention")["model"]["num_query_groups"], 1);
  EXPECT_EQ(tree(few + "--multi-latent-attention")["model"]["kv_lora_rank"], 32);
  const Json experts = tree(few + "--num-experts 8")["training"];
  EXPECT_EQ(experts["moe_token_dispatcher_type"], "allgather");
  EXPECT_EQ(experts["moe_grouped_gemm"], false);
  EXPECT_EQ(tree(few + "--num-experts 8 --moe-grouped-gemm")["training"]["moe_grouped_gemm"], true);
}

TEST_F(MegatronImport, LeavesOutWhatADenseModelHasNoUseFor) {
  for (const std::string none : {"", "--num-experts 0 "}) {
    const Json plan =
        tree(none +
             "--num-layers 2 --hidden-size 64 --num-attention-heads 4 "
             "--expert-tensor-parallel-size 4 --moe-router-topk 2 --moe-grouped-gemm");
    EXPECT_FALSE(plan.contains("parallelism") && plan["parallelism"].contains("expert_tensor"));
    EXPECT_FALSE(plan["model"].contains("moe_router_topk"));
    EXPECT_FALSE(plan["training"].contains("moe_grouped_gemm"));
  }
}

TEST_F(MegatronImport, TakesTheLastBatchOfASchedule) {
  EXPECT_EQ(
      tree(
          "--num-layers 2 --hidden-size 64 --num-attention-heads 4 "
          "--step-batch-size-schedule \"0:16 2.4B:320 12B:1536\"")["training"]["global_batch_size"],
      1536);
}

// 126 layers, the embedding and the loss: 128 in 8 stages of 2 chunks.
TEST_F(MegatronImport, CountsEmbeddingAndLossAsLayersWhereTheFileSaysSo) {
  const std::string words =
      "--hidden-size 64 --num-attention-heads 4 --pipeline-model-parallel-size 8 "
      "--num-virtual-stages-per-pipeline-rank 2 --account-for-embedding-in-pipeline-split "
      "--account-for-loss-in-pipeline-split --num-layers ";
  std::vector<int64_t> layers(16, 8);
  layers.front() = layers.back() = 7;
  EXPECT_EQ(tree(words + "126")["parallelism"]["layers_per_stage"], Json(layers));
  EXPECT_EQ(tree(words + "126")["parallelism"]["virtual_stages"], 2);
  EXPECT_THROW(tree(words + "120"), estimator::UserError);
}

TEST_F(MegatronImport, ReadsMultiTokenPredictionWithItsLayout) {
  const std::string words =
      "--num-layers 15 --hidden-size 64 --num-attention-heads 4 "
      "--pipeline-model-parallel-size 4 --mtp-num-layers 2 --mtp-loss-scaling-factor 0.3 ";
  const std::string flag = "--pipeline-model-parallel-layout";
  const ImportedPlan plan = imported(words + flag + " 'Et*3|(tt|)*6,m*2L'", "arguments.txt");
  EXPECT_EQ(plan.tree.json()["model"]["mtp_num_layers"], 2);
  EXPECT_EQ(plan.tree.json()["model"]["mtp_loss_scaling_factor"], 0.3);
  EXPECT_EQ(plan.stage_flags, decltype(ImportedPlan::stage_flags)({{flag, "Et*3|(tt|)*6,m*2L"}}));
  const auto techniques = imported(words + "--mtp-use-repeated-layer", "arguments.txt").techniques;
  ASSERT_EQ(techniques.size(), 1u);
  EXPECT_EQ(techniques.front().technique->name, "mtp-variants");
}

TEST_F(MegatronImport, RefusesALayoutWhoseEndsCountAsLayersToo) {
  EXPECT_THROW(tree("--num-layers 4 --hidden-size 64 --num-attention-heads 4 "
                    "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Ett|ttL' "
                    "--account-for-loss-in-pipeline-split"),
               estimator::UserError);
}

// __post_init__ of TransformerConfig raises a ValueError.
TEST_F(MegatronImport, RefusesAStagesLayersWhoseEndsCountAsLayersToo) {
  for (const char* flag :
       {"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"}) {
    const std::string arguments =
        "--num-layers 31 --hidden-size 64 --num-attention-heads 4 "
        "--pipeline-model-parallel-size 4 --account-for-loss-in-pipeline-split ";
    EXPECT_NO_THROW(tree(arguments));
    EXPECT_THROW(tree(arguments + flag + " 7"), estimator::UserError) << flag;
  }
}

TEST_F(MegatronImport, ReadsAListInLinesWithoutAProgram) {
  const Json plan =
      tree("--num-layers 2\n--hidden-size 64\n# comment\n--num-attention-heads=4\n--swiglu\n");
  EXPECT_EQ(plan["model"]["num_attention_heads"], 4);
  EXPECT_EQ(plan["model"]["activation"], "swiglu");
}

TEST_F(MegatronImport, ReadsAFunctionalTest) {
  const std::string text = R"(ENV_VARS:
  CUBLAS_WORKSPACE_CONFIG: :4096:8
MODEL_ARGS:
  --num-layers: 12
  --hidden-size: 512
  --bf16: true
  --num-experts: 4
  --moe-layer-freq: ([0]*1+[1]*2)
  --lr: 0.0001
)";
  const std::string file = "model_config.yaml";
  const ImportedPlan plan = imported(text, file);
  EXPECT_EQ(plan.tree.json()["model"]["moe_layer_freq"], Json({0, 1, 1}));
  EXPECT_EQ(plan.tree.json()["training"]["dtype"], "bf16");
  EXPECT_EQ(plan.tree.json()["memory"]["cublas_workspace"], ":4096:8");
  EXPECT_EQ(plan.modelled.front().place, "model_config.yaml:4");
  EXPECT_EQ(imported(text + "MODE: inference\n", file).techniques.front().technique->name,
            "inference");
}

TEST_F(MegatronImport, ReadsHowManyLayersFullRecomputeMeans) {
  const auto said = [](const std::string& granularity, const std::string& key) {
    return said_key(imported(std::string("pretrain_gpt.py ") + kShape +
                             "--recompute-method block --recompute-num-layers 4 "
                             "--recompute-granularity " +
                             granularity + "\n"),
                    "training.recompute_" + key);
  };
  EXPECT_EQ(said("full", "method"), "block");
  EXPECT_EQ(said("full", "num_layers"), 4);
  EXPECT_EQ(said("selective", "method"), nullptr);
  EXPECT_EQ(said("selective", "num_layers"), nullptr);
}

// A functional test has a list as one text; --moe-layer-recompute adds to the list.
TEST_F(MegatronImport, ReadsTheModulesThatAreRecomputed) {
  const Json named = Json::array({"layernorm", "moe_act"});
  const std::string shape = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  const std::string words = shape + "--recompute-granularity selective --recompute-modules ";
  EXPECT_EQ(tree(words + "layernorm moe_act")["training"]["recompute_modules"], named);
  const std::string test =
      "MODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n  --recompute-modules: \"[layernorm "
      "moe_act]\"\n";
  EXPECT_EQ(imported(test, "model_config.yaml").tree.json()["training"]["recompute_modules"],
            named);
  const Json old = tree(shape + "--moe-layer-recompute")["training"];
  EXPECT_EQ(old["recompute"], "selective");
  EXPECT_EQ(old["recompute_modules"], Json::array({"core_attn", "moe"}));
}

TEST_F(MegatronImport, ReadsProductsInEightBits) {
  const std::string words =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --fp8-format hybrid ";
  const Json training = tree(words + "--fp8-recipe tensorwise --fp8-margin 0")["training"];
  EXPECT_EQ(training["fp8_format"], "hybrid");
  EXPECT_EQ(training["fp8_recipe"], "tensorwise");
  const auto technique = [&](const std::string& more) {
    const ImportedPlan plan = imported(words + more);
    return plan.techniques.empty() ? "" : plan.techniques.front().technique->name;
  };
  EXPECT_EQ(technique(""), "");
  EXPECT_EQ(technique("--fp8-recipe mxfp8"), "");
  EXPECT_EQ(technique("--use-distributed-optimizer --fp8-recipe mxfp8 --fp8-param-gather "
                      "--reuse-grad-buf-for-mxfp8-param-ag"),
            "");
  EXPECT_EQ(technique("--fp8-recipe blockwise"), "");
  EXPECT_EQ(technique("--fp8-recipe custom"), "fp8");
  EXPECT_EQ(technique("--num-experts 8"), "");
  EXPECT_EQ(technique("--first-last-layers-bf16"), "fp8");
  EXPECT_EQ(technique("--use-distributed-optimizer --fp8-param-gather"), "");
}

TEST_F(MegatronImport, ReadsProductsInFourBits) {
  const std::string words =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --fp4-format e2m1 ";
  const ImportedPlan plan =
      imported(words + "--fp4-recipe nvfp4 --use-distributed-optimizer --fp4-param-gather");
  EXPECT_TRUE(plan.techniques.empty());
  const Json training = plan.tree.json()["training"];
  EXPECT_EQ(training["fp4_format"], "e2m1");
  EXPECT_EQ(training["fp4_param_gather"], true);
  EXPECT_EQ(imported(words + "--fp4-recipe custom").techniques.front().technique->name, "fp4");
}

TEST_F(MegatronImport, ReadsGradientsInBf16) {
  const ImportedPlan plan = imported(
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --bf16 --grad-reduce-in-bf16");
  EXPECT_TRUE(plan.techniques.empty());
  EXPECT_EQ(plan.tree.json()["training"]["grad_reduce_in_bf16"], true);
}

TEST_F(MegatronImport, RefusesTechniquesByNameOrLeavesThemOut) {
  const std::string text = std::string(kScript) + " ";
  const std::string file = write(
      "train.sh", text.substr(0, text.rfind("--lr")) + "--first-last-layers-bf16 --no-such-key\n");
  const ProgramResult refused = run({"import", file});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error,
              AllOf(HasSubstr("not modelled: training in 8 bits (fp8)"),
                    HasSubstr("train.sh:13: --first-last-layers-bf16"),
                    HasSubstr("no-such-key")));
  const ProgramResult done = run({"import", file, "--ignore", "fp8,no-such-key"});
  EXPECT_EQ(done.exit_code, 0) << done.error;
  EXPECT_THAT(done.error, HasSubstr("left out: training in 8 bits"));
  EXPECT_THAT(run({"import", file, "--ignore", "fp8,mamba,no-such-key"}).error,
              HasSubstr("--ignore mamba"));
}

TEST_F(MegatronImport, AsksForAllThatIsMissingInOneError) {
  const std::string file = write(
      "args.txt",
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --tensor-model-parallel-size $TP");
  const ProgramResult asked = run({"check", file});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.error,
              AllOf(HasSubstr("does not say all that an estimate needs"),
                    HasSubstr("--gpu h100-sxm --nodes 4"),
                    HasSubstr("--vocab-size"),
                    HasSubstr("tensor-model-parallel-size $TP"),
                    Not(HasSubstr("error: the plan names no GPU"))));
}

TEST_F(MegatronImport, DividesStagesByTheArgumentsOfTheFile) {
  const std::string file = write(
      "args.txt",
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --vocab-size 512 --seq-length 64\n"
      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2");
  const ProgramResult written = run({"import", file});
  EXPECT_EQ(Json::parse(written.output)["parallelism"]["virtual_stages"], 2) << written.error;
}

TEST_F(MegatronImport, NamesAProgramOfTransformersAsOne) {
  const std::string script =
      "deepspeed main.py --model_name_or_path a/b --data_path x --weight_decay 0.1 --seed 1 "
      "--zero_stage 3 --output_dir o\n";
  const ProgramResult refused = run({"check", write("opt.sh", script)});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("a program of its own that loads a model of transformers"));
  EXPECT_THAT(refused.error, Not(HasSubstr("Megatron-LM has no such key")));
}

TEST_F(MegatronImport, RefusesAScriptThatStartsNoTraining) {
  const ProgramResult refused = run({"check", write("build.sh", "#!/bin/sh\nmake -j8\n")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("starts no training"));
}

TEST_F(MegatronImport, NamesTheConfigurationOfAScriptThatHasOne) {
  constexpr std::array<std::array<const char*, 2>, 3> kScripts = {
      {{"torchrun -m torchtitan.train --job.config_file x.toml", "x.toml"},
       {"accelerate launch --config_file=fsdp.yaml train.py", "fsdp.yaml"},
       {"deepspeed train.py --deepspeed ds.json", "ds.json"}}};
  for (const auto& [command, named] : kScripts) {
    const std::string script = write("train.sh", std::string("#!/bin/sh\n") + command + "\n");
    EXPECT_THAT(run({"check", script}).error,
                HasSubstr(std::string("give the configuration that it names: ") + named));
  }
}

}  // namespace
}  // namespace sim
