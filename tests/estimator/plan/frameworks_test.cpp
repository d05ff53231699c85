#include "estimator/plan/frameworks.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "estimator/plan/megatron_core.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TEST(Frameworks, EveryNameHasOneRowThatSaysWhatItMeans) {
  std::set<Framework> seen;
  for (const FrameworkTraits& traits : frameworks()) {
    EXPECT_TRUE(seen.insert(traits.framework).second);
    EXPECT_FALSE(traits.stands_for.empty());
    EXPECT_FALSE(traits.notes.empty());
  }
  for (const auto& [framework, name] : enum_names(Framework{})) {
    EXPECT_EQ(traits_of(framework).framework, framework) << name;
  }
}

// megatron/training/arguments.py: --make-vocab-size-divisible-by 128.
TEST(Frameworks, MegatronPadsTheVocabularyAndPlainDoesNot) {
  const auto padded = [](const char* framework) {
    return small_plan({{"training", {{"framework", framework}}}}).padded_vocab_size();
  };
  EXPECT_EQ(padded("megatron-lm"), 1024);
  EXPECT_EQ(padded("megatron-deepspeed"), 1024);
  EXPECT_EQ(padded("torchtitan"), 1000);
  EXPECT_EQ(padded("internevo"), 1000);
  EXPECT_EQ(padded("plain"), 1000);
}

TEST(Frameworks, InternevoHasNoFullyShardedParameters) {
  const auto complaint = [](int zero_stage) {
    return complaint_about({{"parallelism", {{"zero_stage", zero_stage}}},
                            {"training", {{"framework", "internevo"}}}});
  };
  EXPECT_EQ(complaint(1), "");
  EXPECT_NE(complaint(3).find("which the framework does not have"), std::string::npos);
}

TEST(Frameworks, FollowTheZeroStageWhereNoneIsNamed) {
  const auto framework = [](int zero_stage) -> Framework {
    return small_plan({{"parallelism", {{"zero_stage", zero_stage}}}}).training.framework;
  };
  EXPECT_EQ(framework(0), Framework::kMegatronLm);
  EXPECT_EQ(framework(1), Framework::kMegatronLm);
  EXPECT_EQ(framework(2), Framework::kTorchtitan);
  EXPECT_EQ(framework(3), Framework::kTorchtitan);
}

TEST(Frameworks, MegatronsOwnKeysAreRefusedElsewhere) {
  for (const Json& training : {Json{{"transformer_impl", "local"}},
                               Json{{"cross_entropy_fusion", "te"}},
                               Json{{"gradient_accumulation_fusion", false}},
                               Json{{"grad_reduce_in_bf16", true}},
                               Json{{"attention_mask_in_dataloader", true}},
                               Json{{"megatron_core", "0.13"}}}) {
    const Json changes = {{"training", training}};
    EXPECT_EQ(complaint_about(changes), "");
    Json elsewhere = changes;
    elsewhere["training"]["framework"] = "plain";
    EXPECT_NE(complaint_about(elsewhere).find("the key belongs to Megatron-LM"), std::string::npos)
        << training;
  }
}

TEST(Frameworks, KernelsThatAreOffAreThoseOfTheFramework) {
  const auto complaint = [](const char* framework, const char* key) {
    return complaint_about({{"training", {{"framework", framework}, {key, false}}}});
  };
  const std::vector<const char*> keys = {"bias_gelu_fusion",
                                         "bias_swiglu_fusion",
                                         "bias_dropout_fusion",
                                         "masked_softmax_fusion",
                                         "attention_softmax_in_fp32",
                                         "rope_fusion"};
  for (const char* key : keys) {
    EXPECT_EQ(complaint("megatron-lm", key), "") << key;
    const std::string named = std::string("training.") + key + " = false";
    EXPECT_NE(complaint("plain", key).find(named), std::string::npos) << key;
  }
  EXPECT_EQ(complaint("megatron-deepspeed", "masked_softmax_fusion"), "");
  EXPECT_EQ(complaint("megatron-deepspeed", "bias_dropout_fusion"), "");
  EXPECT_EQ(complaint("nanotron", "rope_fusion"), "");
}

// is_kernel_available in fused_softmax.py of Megatron-LM, before January 2022, and of GPT-NeoX.
TEST(Frameworks, HaveASoftmaxKernelForSoManyKeys) {
  const auto keys = [](const Json& training) {
    return fused_softmax_keys(small_plan({{"training", training}}).training);
  };
  EXPECT_EQ(keys({{"transformer_impl", "local"}}), 4096);
  EXPECT_EQ(keys({{"transformer_impl", "local"}, {"megatron_core", "0.0"}}), 2048);
  EXPECT_EQ(keys({{"framework", "megatron-deepspeed"}}), 2048);
  EXPECT_EQ(keys({{"framework", "plain"}}), 0);
  EXPECT_EQ(keys({{"masked_softmax_fusion", false}}), 0);
}

TEST(Frameworks, AnRmsNormOfOperatorsIsPyTorchs) {
  const auto complaint = [](const char* framework) {
    return complaint_about({{"training", {{"framework", framework}, {"rms_norm_fusion", false}}}});
  };
  EXPECT_EQ(complaint("torchtitan"), "");
  EXPECT_EQ(complaint("plain"), "");
  EXPECT_NE(complaint("megatron-lm").find("whose RMSNorm is not PyTorch's"), std::string::npos);
}

/// A Llama on 8 data ranks, trained by transformers' Trainer.
Json trainer(const Json& training, const Json& parallelism = Json::object()) {
  Json changes = {{"parallelism", parallelism}, {"training", {{"framework", "transformers"}}}};
  changes["training"].merge_patch(training);
  return changes;
}

TEST(TransformersFramework, HasParametersInFp32UnlessTheModelIsIn16Bits) {
  const auto parameter_dtype = [](const Json& training) {
    return small_plan(trainer(training)).training.parameter_dtype();
  };
  EXPECT_EQ(parameter_dtype({{"dtype", "bf16"}}), Dtype::kFp32);
  EXPECT_EQ(parameter_dtype({{"dtype", "bf16"}, {"mixed_precision", false}}), Dtype::kBf16);
  EXPECT_EQ(parameter_dtype({{"dtype", "fp32"}}), Dtype::kFp32);
  EXPECT_EQ(parameter_dtype({{"dtype", "fp16"}}), Dtype::kFp32);
  EXPECT_NE(complaint_about(trainer({{"dtype", "fp16"}, {"mixed_precision", false}}))
                .find("loss scaler refuses gradients in fp16"),
            std::string::npos);
  EXPECT_FALSE(small_plan(trainer({{"dtype", "fp32"}})).training.mixed_precision);
  EXPECT_FALSE(small_plan(Json::object()).training.mixed_precision);
}

TEST(TransformersFramework, AloneHasMixedPrecision) {
  EXPECT_NE(complaint_about({{"training", {{"mixed_precision", true}}}})
                .find("only transformers' Trainer has this key"),
            std::string::npos);
  EXPECT_NE(complaint_about(trainer({{"dtype", "fp32"}, {"mixed_precision", true}}))
                .find("mixed precision computes in 16 bits"),
            std::string::npos);
}

TEST(TransformersFramework, HasAGroupOfParametersThatDoNotDecay) {
  const auto has_groups = [](const char* framework) {
    return small_plan({{"training", {{"framework", framework}}}})
        .training.decay_groups.value_or(false);
  };
  EXPECT_TRUE(has_groups("transformers"));
  EXPECT_FALSE(has_groups("torchtitan"));
  EXPECT_FALSE(small_plan(trainer({{"decay_groups", false}})).training.decay_groups);
  EXPECT_NE(complaint_about({{"training", {{"framework", "plain"}, {"decay_groups", true}}}})
                .find("only transformers' Trainer has this key"),
            std::string::npos);
}

// 25 MiB, of elements in the type of the parameters.
TEST(TransformersFramework, HasPyTorchsBucketsAndReducesThemInBackward) {
  const auto parallelism = [](const Json& training) {
    return small_plan(trainer(training)).parallelism;
  };
  EXPECT_EQ(parallelism({{"dtype", "bf16"}}).bucket_elements, 25 * 1024 * 1024 / 4);
  EXPECT_EQ(parallelism({{"mixed_precision", false}}).bucket_elements, 25 * 1024 * 1024 / 2);
  EXPECT_TRUE(parallelism(Json::object()).overlap_grad_reduce);
  EXPECT_FALSE(
      small_plan({{"training", {{"framework", "torchtitan"}}}}).parallelism.overlap_grad_reduce);
}

TEST(TransformersFramework, DividesTheBatchAlone) {
  const auto complaint = [](const Json& parallelism, const Json& training = Json::object()) {
    return complaint_about(trainer(training, parallelism));
  };
  EXPECT_EQ(complaint({{"zero_stage", 0}}), "");
  EXPECT_EQ(complaint({{"zero_stage", 2}}), "");
  EXPECT_EQ(complaint({{"zero_stage", 3}}, {{"recompute", "full"}}), "");
  EXPECT_NE(complaint({{"tensor", 2}}).find("with data parallelism alone"), std::string::npos);
  EXPECT_NE(complaint({{"pipeline", 2}}).find("with data parallelism alone"), std::string::npos);
  EXPECT_NE(complaint({{"zero_stage", 1}}).find("no ZeRO stage 1 of its own"), std::string::npos);
  EXPECT_NE(complaint({{"zero_stage", 0}}, {{"recompute", "selective"}})
                .find("gradient checkpointing runs whole layers again"),
            std::string::npos);
}

// check_prefer_cudnn_attention in sdp_utils.cpp of PyTorch 2.11.
TEST(TransformersFramework, LeavesTheKernelOfAttentionToPyTorch) {
  const auto kernel = [](const char* gpu, int64_t width) {
    Json changes = trainer({{"dtype", "bf16"}});
    changes["cluster"] = {{"gpu", gpu}};
    changes["model"] = {{"kv_channels", width}};
    return small_plan(changes).training.attention.value();
  };
  EXPECT_EQ(kernel("h100-sxm", 64), Attention::kFused);
  EXPECT_EQ(kernel("b200", 64), Attention::kFused);
  EXPECT_EQ(kernel("a100-sxm-80", 64), Attention::kFlash);
  EXPECT_EQ(kernel("h100-sxm", 60), Attention::kFlash);
}

// megatron/training/arguments.py has the mask unless --no-create-attention-mask-in-dataloader.
TEST(Frameworks, OfMegatronAloneHaveAMaskInEachMicroBatch) {
  for (const auto& [framework, name] : enum_names(Framework{})) {
    const bool shards_none =
        framework == Framework::kTransformers || framework == Framework::kTorchtitan;
    const int stage = shards_none ? 0 : 1;  // DeepSpeed's needs one
    const Plan plan =
        small_plan({{"parallelism", {{"zero_stage", stage}}}, {"training", {{"framework", name}}}});
    EXPECT_EQ(plan.training.attention_mask_in_dataloader, framework == Framework::kMegatronLm);
  }
}

using enum Recomputed;

/// Of the first four layers of a rank and of its chunk.
std::vector<Recomputed> of_four_layers(const Json& training) {
  const Plan plan = small_plan({{"training", training}});
  std::vector<Recomputed> layers;
  for (int64_t layer = 0; layer < 4; ++layer) {
    layers.push_back(recomputed(plan, LayerNumber().after(layer)));
  }
  return layers;
}

std::vector<Recomputed> titan(const Json& option) {
  Json training = {{"framework", "torchtitan"}, {"recompute", "selective"}};
  training.merge_patch({{"selective_ac_option", option}});
  return of_four_layers(training);
}

TEST(RecomputeChoice, IsTheSameForAllLayersButTorchTitansByLayer) {
  EXPECT_EQ(of_four_layers({{"recompute", "none"}}), std::vector(4, kNothing));
  EXPECT_EQ(of_four_layers({{"recompute", "full"}}), std::vector(4, kLayer));
  EXPECT_EQ(of_four_layers({{"recompute", "selective"}}), std::vector(4, kModules));
  EXPECT_EQ(of_four_layers({{"recompute", "full"}, {"framework", "torchtitan"}}),
            std::vector(4, kLayer));
}

// recompute_modules in megatron/core/transformer/transformer_config.py: core_attn if none is named.
TEST(RecomputeChoice, OfModulesIsThatOfSelectiveRecomputeAlone) {
  using enum RecomputeModule;
  const auto chosen = [](const Json& training) {
    std::vector<RecomputeModule> modules;
    for (const auto& [module, name] : enum_names(RecomputeModule{})) {
      if (recomputes(small_plan({{"training", training}}), module)) modules.push_back(module);
    }
    return modules;
  };
  const Json named = Json::array({"layernorm", "moe"});
  EXPECT_EQ(chosen({{"recompute", "selective"}}), std::vector{kCoreAttention});
  EXPECT_EQ(chosen({{"recompute", "selective"}, {"recompute_modules", named}}),
            (std::vector{kMoe, kNorms}));
  EXPECT_TRUE(chosen({{"recompute", "none"}, {"recompute_modules", named}}).empty());
  EXPECT_TRUE(chosen({{"recompute", "full"}, {"recompute_modules", named}}).empty());
  EXPECT_TRUE(chosen({{"recompute", "selective"}, {"framework", "torchtitan"}}).empty());
}

TEST(RecomputeChoice, OfTorchTitanIsByOperatorUnlessToldOtherwise) {
  EXPECT_EQ(titan(nullptr), std::vector(4, kUnlistedOperators));
  EXPECT_EQ(titan("op"), std::vector(4, kUnlistedOperators));
}

// It counts layers from 1: _layer_sac_count in activation_checkpoint.py.
TEST(RecomputeChoice, OfTorchTitanByLayerIsFullForEveryNth) {
  EXPECT_EQ(titan("2"), (std::vector{kNothing, kLayer, kNothing, kLayer}));
  EXPECT_EQ(titan("3"), (std::vector{kNothing, kNothing, kLayer, kNothing}));
  EXPECT_EQ(titan("5"), std::vector(4, kNothing));
  EXPECT_EQ(titan("1"), std::vector(4, kLayer));
  EXPECT_EQ(titan("0"), std::vector(4, kLayer));
}

TEST(MegatronCore, LastsStandInsFrom14On) {
  const auto lasts = [](const char* version) {
    return output_stand_in_lasts({.megatron_core = version});
  };
  EXPECT_TRUE(lasts(""));
  EXPECT_TRUE(lasts("0.14.0"));
  EXPECT_TRUE(lasts("0.19"));
  EXPECT_FALSE(lasts("0.9.0"));
  EXPECT_FALSE(lasts("0.13.1"));
}

TEST(MegatronCore, RefusesWhatIsNoVersion) {
  for (const char* version : {"13", "0.", "0.x", "0.13.", "0.13.1a", "1.2"}) {
    const std::string complaint = complaint_about({{"training", {{"megatron_core", version}}}});
    EXPECT_NE(complaint.find("version of Megatron-LM's core"), std::string::npos) << version;
  }
}

}  // namespace
}  // namespace estimator
