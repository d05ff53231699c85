#include "sim/cli/input/plan_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <set>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/resolve_plan.h"

namespace sim {
namespace {

using estimator::find_in_tree;
using estimator::Json;
using estimator::set_in_tree;
using testing::HasSubstr;

/// The tree after the flags were written over it.
Json overlaid(const std::string& command_line, Json tree = Json::object()) {
  CLI::App app;
  PlanFlags flags;
  flags.add_to(app);
  app.parse(command_line, false);
  flags.overlay(tree);
  return tree;
}

std::string error_of(const std::string& command_line) {
  try {
    overlaid(command_line);
  } catch (const estimator::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PlanFlags, OfMegatronsOptimizerOffloadAreItsOwn) {
  EXPECT_EQ(overlaid("--optimizer-cpu-offload --optimizer-offload-fraction 0.5 "
                     "--use-precision-aware-optimizer --use-torch-optimizer-for-cpu-offload "
                     "--overlap-cpu-optimizer-d2h-h2d --no-pin-cpu-grads --no-pin-cpu-params"),
            Json({{"training",
                   {{"optimizer_cpu_offload", true},
                    {"optimizer_offload_fraction", 0.5},
                    {"use_precision_aware_optimizer", true},
                    {"overlap_cpu_optimizer_d2h_h2d", true},
                    {"pin_cpu_grads", false},
                    {"pin_cpu_params", false}}}}));
}

TEST(PlanFlags, EachNameOfAFlagWritesItsKey) {
  EXPECT_EQ(overlaid("--tensor-model-parallel-size 8"), overlaid("--tp 8"));
  EXPECT_EQ(overlaid("--tp 8"), Json({{"parallelism", {{"tensor", 8}}}}));
  EXPECT_EQ(overlaid("--tp=8"), overlaid("--tp 8"));
  EXPECT_EQ(overlaid("--hidden-dropout 0.25"), Json({{"model", {{"hidden_dropout", 0.25}}}}));
  EXPECT_EQ(overlaid("--num-layers-per-stage 7,8,7"),
            Json({{"parallelism", {{"layers_per_stage", {7, 8, 7}}}}}));
}

/// A flag with a key that plans do not have would only be found when a user types it.
TEST(PlanFlags, EveryFlagWritesAKeyThatPlansHave) {
  const std::string base = "--model llama3-8b --gpu h100-sxm --nodes 1 ";
  const Json resolved = estimator::to_json(estimator::resolve_plan(overlaid(base), {}));
  const std::set<std::string> empty_until_asked_for = {
      "training.steps",
      "training.tokens",
      "training.gradient_accumulation_steps",
      "training.fill_uninitialized_memory",
      "training.moe_expert_capacity_factor",
      "training.moe_expert_rank_capacity_factor",
      "training.moe_flex_dispatcher_num_sms",
      "cluster.usd_per_gpu_hour",
      "cluster.nodes_per_pod",
      "cluster.gpu_deviation",
      "parallelism.microbatch_group_size_per_virtual_stage",
      "reliability.gpu_hours_between_failures",
      "reliability.restart_seconds",
      "reliability.checkpoint_seconds",
      "reliability.save_interval"};
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      if (flag.path.empty() || empty_until_asked_for.count(flag.path) > 0) continue;
      EXPECT_FALSE(find_in_tree(resolved, flag.path).is_null()) << flag.names();
    }
  }
  EXPECT_NO_THROW(estimator::resolve_plan(
      overlaid(base +
               "--train-iters 15259 --train-tokens 1e9 --price 2.5 --nodes-per-pod 384 "
               "--gpu-deviation 0.02 "
               "--gpu-hours-between-failures 5e4 --restart-seconds 300 --checkpoint-seconds 5 "
               "--save-interval 100 --deterministic-mode --fill-uninitialized-memory"),
      {}));
}

TEST(PlanFlags, SayWhatHoldsWithoutThem) {
  EXPECT_EQ(find_plan_flag("--tp")->help, "tensor parallel size (default: 1)");
  EXPECT_EQ(find_plan_flag("--rotary-base")->help,
            "base of the rotary angles (default without a preset: 10000.0)");
  EXPECT_THAT(find_plan_flag("--kv-lora-rank")->help, HasSubstr("(default without a preset: 512)"));
  EXPECT_EQ(find_plan_flag("--num-layers")->help, "transformer layers") << "has to be given";
}

// parse_args of megatron/training/arguments.py @d98e8a64.
TEST(PlanFlags, KnowWhichOfThemMegatronHas) {
  for (const char* name : {"--tp", "--bf16", "--attention-backend", "--recompute-granularity"}) {
    EXPECT_FALSE(find_plan_flag(name)->said.is_ours) << name;
  }
  for (const char* name :
       {"--dp", "--fp32", "--dtype", "--attention", "--recompute", "--model", "--gpus-per-node"}) {
    EXPECT_TRUE(find_plan_flag(name)->said.is_ours) << name;
  }
}

TEST(PlanFlags, SwitchesWriteTheirConstants) {
  EXPECT_EQ(overlaid("--sp --use-distributed-optimizer"),
            Json({{"parallelism", {{"sequence_parallel", true}, {"zero_stage", 1}}}}));
  EXPECT_EQ(overlaid("--swiglu --untie-embeddings-and-output-weights"),
            Json({{"model", {{"tie_embeddings", false}, {"activation", "swiglu"}}}}));
  EXPECT_EQ(overlaid("--sp=false"), Json({{"parallelism", {{"sequence_parallel", false}}}}));
  EXPECT_THAT(error_of("--swiglu=false"), HasSubstr("--swiglu"));
}

TEST(PlanFlags, TakeMegatronsWords) {
  EXPECT_EQ(overlaid("--optimizer adam"), Json({{"training", {{"optimizer", "adamw"}}}}));
  EXPECT_EQ(overlaid("--attention-backend local"), overlaid("--attention-backend unfused"));
  EXPECT_EQ(overlaid("--use-flash-attn"), overlaid("--attention-backend flash"));
  EXPECT_EQ(overlaid("--recompute-activations"), overlaid("--recompute-granularity selective"));
  EXPECT_EQ(overlaid("--group-query-attention"), Json::object());
}

TEST(PlanFlags, WinOverTheFile) {
  const Json file = {{"parallelism", {{"tensor", 2}, {"pipeline", 4}}}};
  EXPECT_EQ(overlaid("--tp 8", file), Json({{"parallelism", {{"tensor", 8}, {"pipeline", 4}}}}));
}

TEST(PlanFlags, ANamedModelReplacesTheFilesModelAndOtherFlagsChangeIt) {
  const Json file = {{"model", {{"num_layers", 2}, {"hidden_size", 64}}}};
  EXPECT_EQ(overlaid("--model gpt2", file), Json({{"model", {{"preset", "gpt2"}}}}));
  EXPECT_EQ(overlaid("--num-layers 4", {{"model", "gpt2"}}),
            Json({{"model", {{"preset", "gpt2"}, {"num_layers", 4}}}}));
}

TEST(PlanFlags, SetWritesAnyKeyAsJsonOrAsAWord) {
  EXPECT_EQ(overlaid("--set a.b=[1,2] --set a.c=word --set d=1"),
            Json({{"a", {{"b", {1, 2}}, {"c", "word"}}}, {"d", 1}}));
  EXPECT_THAT(error_of("--set novalue"), HasSubstr("--set = \"novalue\""));
}

// megatron/training/arguments.py: the one turns it on, the other says by what.
TEST(PlanFlags, ThatTurnTheCrossEntropysFusionOnLeaveTheChoiceToTheOther) {
  const auto fusion = [](const std::string& flags) {
    return find_in_tree(overlaid(flags), "training.cross_entropy_fusion");
  };
  EXPECT_EQ(fusion("--cross-entropy-loss-fusion"), "native");
  EXPECT_EQ(fusion("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"), "te");
  EXPECT_EQ(fusion("--cross-entropy-fusion-impl te --cross-entropy-loss-fusion"), "te");
}

TEST(PlanFlags, ThatDisagreeAreAnError) {
  EXPECT_THAT(error_of("--bf16 --fp16"), HasSubstr("--bf16 and --fp16"));
  EXPECT_THAT(error_of("--use-distributed-optimizer --zero-stage 0"), HasSubstr("--zero-stage"));
  EXPECT_EQ(error_of("--use-distributed-optimizer --zero-stage 1"), "");
}

TEST(PlanFlags, ReadNumbersStrictlyAndNameTheFlag) {
  for (const std::string value : {"8x", "nan", "1e3.5", "0x8"}) {
    EXPECT_THAT(error_of("--tp " + value), HasSubstr("--tp = ")) << value;
  }
  EXPECT_THAT(error_of("--num-layers-per-stage 7,,8"),
              HasSubstr("--num-layers-per-stage = \"7,,8\""));
  EXPECT_THAT(error_of("--price nan"), HasSubstr("--price = \"nan\""));
}

TEST(PlanFlags, NameThemselvesInMessagesAboutTheirKeys) {
  CLI::App app;
  PlanFlags flags;
  flags.add_to(app);
  app.parse("--pp 7 --gpu h100", false);
  EXPECT_EQ(flags.with_flag_names("parallelism.pipeline = 7, parallelism.tensor = 2"),
            "--pp = 7, parallelism.tensor = 2");
  EXPECT_EQ(flags.with_flag_names("cluster.gpus_per_node = 8, cluster.gpu = \"h100\""),
            "cluster.gpus_per_node = 8, --gpu = \"h100\"");
}

TEST(PlanTree, RefusesToSetAKeyOfWhatIsNoObject) {
  Json tree = {{"parallelism", 3}};
  EXPECT_THROW(set_in_tree(tree, "parallelism.tensor", 8, "--tp"), estimator::UserError);
}

}  // namespace
}  // namespace sim
