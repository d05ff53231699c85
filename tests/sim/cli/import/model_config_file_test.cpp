#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/key_table.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;

ImportedPlan hf_plan(const std::string& text) {
  auto plan = import_text(text, "config.json");
  EXPECT_TRUE(plan);
  return plan ? *plan : ImportedPlan();
}

using HfNames = std::vector<std::string>;

HfNames hf_techniques(const ImportedPlan& plan) {
  HfNames names;
  for (const UsedTechnique& used : plan.techniques) names.push_back(used.technique->name);
  return names;
}

/// The parameters of the model that the tree describes.
int64_t hf_parameters(Json tree) {
  tree["cluster"] = {{"gpu", "h100"}, {"nodes", 1}};
  const estimator::Plan plan = estimator::resolve_plan(tree, {});
  return estimator::parameter_count(plan.model, plan.model.vocab_size);
}

TEST(HfConfig, GivesThePublishedParameters) {
  const std::string llama = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu",
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "tie_word_embeddings": false,
      "attention_bias": false, "torch_dtype": "bfloat16"})";
  const ImportedPlan plan = hf_plan(llama);
  EXPECT_EQ(hf_parameters(plan.tree.json()), 8'030'261'248);
  EXPECT_TRUE(plan.techniques.empty());
  EXPECT_TRUE(plan.unknown.empty());
  const std::string gpt2 = R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
      "n_positions": 1024, "n_inner": null, "vocab_size": 50257, "activation_function": "gelu_new"})";
  EXPECT_EQ(hf_parameters(hf_plan(gpt2).tree.json()), 124'439'808);
  const std::string qwen =
      R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "vocab_size": 152064, "max_position_embeddings": 131072, "use_sliding_window": false,
      "sliding_window": 131072, "hidden_act": "silu"})";
  EXPECT_EQ(hf_parameters(hf_plan(qwen).tree.json()), 7'615'616'512);
}

// EleutherAI/pythia-6.9b and tiiuae/falcon-7b, whose layers have one norm and one key/value head.
TEST(HfConfig, GivesThePublishedParametersOfParallelLayers) {
  const auto of = [](const std::string& config) {
    Json tree = hf_plan(config).tree.json();
    tree["training"]["framework"] = "plain";
    return hf_parameters(tree);
  };
  EXPECT_EQ(of(R"({"model_type": "gpt_neox", "hidden_size": 4096, "intermediate_size": 16384,
      "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50432, "hidden_act": "gelu",
      "max_position_embeddings": 2048, "rotary_pct": 0.25, "rotary_emb_base": 10000,
      "use_parallel_residual": true, "tie_word_embeddings": false})"),
            6'857'302'016);
  EXPECT_EQ(of(R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
      "num_attention_heads": 71, "vocab_size": 65024, "alibi": false, "bias": false,
      "multi_query": true, "new_decoder_architecture": false, "parallel_attn": true,
      "max_position_embeddings": 2048})"),
            6'921'720'704);
}

TEST(HfConfig, ReadsDeepSeeksExpertsAndLatents) {
  const std::string text = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
      "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
      "num_attention_heads": 128, "num_key_value_heads": 128, "n_shared_experts": 1,
      "n_routed_experts": 256, "routed_scaling_factor": 2.5, "kv_lora_rank": 512,
      "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
      "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
      "scoring_func": "sigmoid", "vocab_size": 129280, "max_position_embeddings": 163840,
      "hidden_act": "silu", "num_nextn_predict_layers": 1,
      "quantization_config": {"quant_method": "fp8"}})";
  const ImportedPlan plan = hf_plan(text);
  EXPECT_EQ(hf_techniques(plan), HfNames{"fp8"});
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_THAT(plan.notes.front(), HasSubstr("--mtp-num-layers"));
  EXPECT_EQ(hf_parameters(plan.tree.json()), 671'026'404'352);
}

// save_pretrained() of transformers 4.57.3 writes both.
TEST(HfConfig, ReadsWhatDeepSeeksClassWritesBesides) {
  const ImportedPlan plan =
      hf_plan(R"({"model_type": "deepseek_v3", "qk_head_dim": 192, "rope_interleave": true})");
  EXPECT_EQ(plan.unknown.size(), 0u);
  EXPECT_EQ(said_key(plan, "model.qk_head_dim"), 128);
}

TEST(HfConfig, TakesNoNullForTrue) {
  const auto of = [](const std::string& bias) {
    return said_key(hf_plan(R"({"model_type": "llama", "attention_bias": )" + bias + "}"),
                    "model.add_attention_bias");
  };
  EXPECT_EQ(of("null"), Json());
  EXPECT_EQ(of("true"), true);
}

// MixtralSparseMoeBlock multiplies by noise where router_jitter_noise is more than 0.
TEST(HfConfig, NamesNoiseOnTheInputsOfRouters) {
  const auto of = [](const std::string& noise) {
    return hf_techniques(
        hf_plan(R"({"model_type": "mixtral", "router_jitter_noise": )" + noise + "}"));
  };
  EXPECT_EQ(of("0.01"), HfNames{"router-jitter"});
  EXPECT_EQ(of("0.0"), HfNames{});
}

// GemmaDecoderLayer has two norms; those of Gemma 2 and 3 have four. Gemma3TextModel turns heads in
// layers with a window by other angles, and Gemma2ForCausalLM caps its logits.
TEST(HfConfig, TellsTheGemmasApart) {
  const auto said = [](const std::string& type, const std::string& key) {
    return said_key(hf_plan(Json{{"model_type", type}}.dump()), "model." + key);
  };
  for (const char* type : {"gemma", "gemma2", "gemma3_text"}) {
    EXPECT_EQ(said(type, "norm_weight_in_fp32"), true) << type;
  }
  EXPECT_EQ(said("gemma", "norm_position"), Json());
  EXPECT_EQ(said("gemma2", "norm_position"), "both");
  EXPECT_EQ(said("gemma2", "final_logit_softcapping"), 30);
  EXPECT_EQ(said("gemma2", "window_attn_skip_freq"), Json({2}));
  EXPECT_EQ(said("gemma3_text", "rotary_base_in_window"), 10000);
  EXPECT_EQ(said("gemma3_text", "window_attn_skip_freq"), Json({6}));
}

TEST(HfConfig, NamesWhatItsLayersHaveBesides) {
  const ImportedPlan normed = hf_plan(R"({"model_type": "qwen3", "hidden_size": 1024})");
  EXPECT_EQ(hf_techniques(normed), HfNames{});
  EXPECT_EQ(normed.tree.json()["model"]["qk_layernorm"], true);
  EXPECT_EQ(hf_techniques(hf_plan(R"({"model_type": "bert", "hidden_size": 1024})")),
            HfNames{"custom-layers"});
  EXPECT_EQ(hf_plan(R"({"model_type": "llama", "no_such_key": 1})").unknown.size(), 1u);
}

/// The parameters of a small model of the family with these keys instead of or beside its own.
int64_t small_model(const std::string& type, const Json& keys) {
  Json config = {{"model_type", type}, {"vocab_size", 32000}, {"num_hidden_layers", 4}};
  config.update(
      {{"hidden_size", 512}, {"num_attention_heads", 8}, {"max_position_embeddings", 64}});
  config.update(keys);
  Json tree = hf_plan(config.dump()).tree.json();
  tree["training"]["framework"] = "plain";
  return hf_parameters(tree);
}

const Json& latent_keys() {
  static const Json keys = {{"intermediate_size", 1024},
                            {"n_routed_experts", 8},
                            {"num_experts_per_tok", 2},
                            {"moe_intermediate_size", 256},
                            {"q_lora_rank", 128},
                            {"kv_lora_rank", 64},
                            {"qk_nope_head_dim", 32},
                            {"qk_rope_head_dim", 16},
                            {"v_head_dim", 32},
                            {"n_group", 1},
                            {"topk_group", 1}};
  return keys;
}

Json and_keys(Json keys, const Json& more) {
  keys.update(more);
  return keys;
}

// These and the counts below: sum(p.numel()) of AutoModelForCausalLM.from_config() of transformers
// 4.57.3 on the meta device.
TEST(HfConfig, TakesWhatItDoesNotSayFromItsClass) {
  const Json mistral = {{"num_attention_heads", 16}, {"intermediate_size", 1024}};
  EXPECT_EQ(small_model("mistral", mistral), 42'209'792);  // 8 heads for keys
  EXPECT_EQ(small_model("mixtral", and_keys(mistral, {{"num_local_experts", 4}})), 61'092'352);
  EXPECT_EQ(small_model("mistral", and_keys(mistral, {{"num_key_value_heads", nullptr}})),
            43'258'368);                                         // as many as for queries
  EXPECT_EQ(small_model("falcon", Json::object()), 27'137'024);  // parallel, with one head for keys
  EXPECT_EQ(small_model("deepseek_v3", latent_keys()), 42'312'960);  // three dense layers
  const Json experts = {{"num_key_value_heads", 4},
                        {"num_experts", 8},
                        {"num_experts_per_tok", 2},
                        {"moe_intermediate_size", 256}};
  EXPECT_EQ(small_model("qwen3_moe", experts), 48'518'144);  // heads of 64
}

TEST(HfConfig, GatesTheMlpOfAFamilyWhateverItsActivationIs) {
  const auto activation = [](const std::string& type, const char* key, const char* name) {
    const Json config = {{"model_type", type}, {key, name}};
    return said_key(hf_plan(config.dump()), "model.activation");
  };
  EXPECT_EQ(activation("llama", "hidden_act", "gelu"), "geglu");
  EXPECT_EQ(activation("llama", "hidden_act", "silu"), "swiglu");
  EXPECT_EQ(activation("gemma2", "hidden_activation", "gelu_pytorch_tanh"), "geglu");
  EXPECT_EQ(activation("gpt2", "activation_function", "relu"), "relu");
  EXPECT_EQ(activation("gpt_neox", "hidden_act", "gelu"), "gelu");
  const Json llama = {
      {"intermediate_size", 1024}, {"num_key_value_heads", 4}, {"hidden_act", "gelu"}};
  EXPECT_EQ(small_model("llama", llama), 42'209'792);
  EXPECT_EQ(hf_techniques(hf_plan(R"({"model_type": "llama", "hidden_act": "relu"})")),
            HfNames{"activation"});
  const ImportedPlan plain = hf_plan(R"({"model_type": "gpt2", "activation_function": "silu"})");
  EXPECT_EQ(hf_techniques(plain), HfNames{"activation"});
  EXPECT_EQ(said_key(plain, "model.activation"), "gelu");  // with --ignore
  EXPECT_EQ(activation("gpt2", "activation_function", "gelu_new"), "gelu_new");
  EXPECT_EQ(hf_techniques(hf_plan(R"({"model_type": "gpt2", "activation_function": "gelu_fast"})")),
            HfNames{"activation"});
}

TEST(HfConfig, KnowsWhichLayersHaveExperts) {
  const Json qwen = {{"num_key_value_heads", 4},
                     {"num_experts", 8},
                     {"num_experts_per_tok", 2},
                     {"moe_intermediate_size", 256},
                     {"head_dim", 64},
                     {"intermediate_size", 1024}};
  EXPECT_EQ(small_model("qwen3_moe", and_keys(qwen, {{"decoder_sparse_step", 2}})), 45'364'224);
  EXPECT_EQ(small_model("qwen3_moe", and_keys(qwen, {{"mlp_only_layers", {0, 1}}})), 45'364'224);
  const Json cut =
      and_keys(latent_keys(), {{"num_hidden_layers", 2}, {"first_k_dense_replace", 3}});
  EXPECT_EQ(small_model("deepseek_v3", cut), 36'555'648);
}

// LlamaAttention has biases on all four products, GlmAttention on those of query, key and value.
TEST(HfConfig, KnowsWhichProductsHaveBiases) {
  const Json llama = {{"intermediate_size", 1024}, {"num_key_value_heads", 4}};
  EXPECT_EQ(small_model("llama", and_keys(llama, {{"attention_bias", true}})), 42'215'936);
  EXPECT_EQ(small_model("llama", and_keys(llama, {{"attention_bias", true}, {"mlp_bias", true}})),
            42'226'176);
  EXPECT_EQ(small_model("glm4", and_keys(llama, {{"attention_bias", true}})), 45'367'808);
  EXPECT_EQ(small_model("glm4", and_keys(llama, {{"attention_bias", false}})), 45'359'616);
}

TEST(HfConfig, RefusesBiasesOfAttentionThatAreNotBuilt) {
  const auto of = [](const std::string& type, bool bias) {
    const Json config = {{"model_type", type}, {"attention_bias", bias}};
    return hf_techniques(hf_plan(config.dump()));
  };
  EXPECT_EQ(of("deepseek_v3", true), HfNames{"attention-bias"});
  EXPECT_EQ(of("deepseek_v3", false), HfNames{});
  EXPECT_EQ(of("gpt_neox", true), HfNames{});
  EXPECT_EQ(of("gpt_neox", false), HfNames{"attention-bias"});
  EXPECT_EQ(of("mixtral", true), HfNames{});  // its class has no such key
}

/// Sizes that these families have beside those of small_model().
const Json& grouped_keys() {
  static const Json keys = {{"intermediate_size", 1024}, {"num_key_value_heads", 4}};
  return keys;
}

Json grouped_and(const Json& more) { return and_keys(grouped_keys(), more); }

TEST(HfConfig, CountsTheParametersOfDenseFamilies) {
  EXPECT_EQ(small_model("opt", {{"ffn_dim", 1024}}), 24'829'952);  // two positions more
  EXPECT_EQ(small_model("olmo", grouped_keys()), 42'205'184);      // norms without weights
  EXPECT_EQ(small_model("olmo2", grouped_keys()), 42'212'864);  // norms of whole queries and keys
  EXPECT_EQ(small_model("gpt_bigcode", Json::object()), 27'188'736);
  EXPECT_EQ(small_model("starcoder2", grouped_keys()), 23'745'536);
  EXPECT_EQ(small_model("stablelm", grouped_and({{"use_qkv_bias", true}})), 42'218'496);
  EXPECT_EQ(small_model("glm", grouped_keys()), 45'363'712);
  EXPECT_EQ(small_model("smollm3", grouped_keys()), 25'825'792);
  EXPECT_EQ(small_model("granite", grouped_keys()), 42'209'792);
  EXPECT_EQ(small_model("seed_oss", grouped_keys()), 45'363'712);
  EXPECT_EQ(small_model("cohere", grouped_keys()),
            25'823'744);  // norms without biases, one a layer
  EXPECT_EQ(small_model("ernie4_5", grouped_keys()), 28'971'520);
  EXPECT_EQ(small_model("nemotron", grouped_keys()), 40'117'248);
  EXPECT_EQ(small_model("arcee", grouped_keys()), 40'112'640);
  EXPECT_EQ(small_model("helium", grouped_and({{"head_dim", 64}})), 42'209'792);
  EXPECT_EQ(small_model("hunyuan_v1_dense", grouped_and({{"head_dim", 64}})), 42'210'304);
  EXPECT_EQ(small_model("phi", {{"intermediate_size", 1024}}), 41'208'064);  // a bias of the head
  EXPECT_EQ(small_model("phi", {{"intermediate_size", 1024}, {"qk_layernorm", true}}), 41'209'088);
}

TEST(HfConfig, CountsTheParametersOfFamiliesWithAWindow) {
  EXPECT_EQ(small_model("olmo3", grouped_keys()), 42'212'864);
  EXPECT_EQ(small_model("exaone4", grouped_keys()), 42'210'304);
  EXPECT_EQ(small_model("cohere2", grouped_keys()), 25'823'744);
}

TEST(HfConfig, CountsTheParametersOfFamiliesWithExperts) {
  const Json experts = {{"num_experts_per_tok", 2}, {"moe_intermediate_size", 256}};
  const Json glm = {{"n_routed_experts", 8}, {"use_qk_norm", true}, {"attention_bias", true}};
  EXPECT_EQ(small_model("glm4_moe", and_keys(grouped_and(experts), glm)), 48'124'928);
  const Json dots = {
      {"n_routed_experts", 8}, {"n_shared_experts", 2}, {"first_k_dense_replace", 1}};
  EXPECT_EQ(small_model("dots1", and_keys(grouped_and(experts), dots)), 49'300'480);
  EXPECT_EQ(small_model("olmoe", grouped_and({{"num_experts", 8}})), 86'269'440);
  EXPECT_EQ(small_model("granitemoe", grouped_and({{"num_local_experts", 4}})), 61'092'352);
  // Without the biases that choose experts, which no gradient changes.
  EXPECT_EQ(
      small_model(
          "ernie4_5_moe",
          grouped_and({{"moe_num_experts", 8}, {"moe_k", 2}, {"moe_intermediate_size", 256}})),
      32'915'968);
  const Json hunyuan = {{"num_experts", 4}, {"moe_topk", {2, 2, 2, 2}}, {"head_dim", 64}};
  EXPECT_EQ(small_model("hunyuan_v1_moe", grouped_and(hunyuan)), 67'384'320);
}

// Its published configuration, whose weights are 20,914,757,184 numbers without MXFP4.
TEST(HfConfig, ReadsGptOss) {
  const Json config = {{"model_type", "gpt_oss"},
                       {"num_hidden_layers", 24},
                       {"num_local_experts", 32},
                       {"attention_bias", true},
                       {"hidden_act", "silu"},
                       {"swiglu_limit", 7.0},
                       {"experts_per_token", 4},
                       {"quantization_config", {{"quant_method", "mxfp4"}}}};
  const ImportedPlan plan = hf_plan(config.dump());
  EXPECT_TRUE(plan.techniques.empty());
  EXPECT_EQ(plan.notes.size(), 1U);  // of MXFP4
  EXPECT_EQ(hf_parameters(plan.tree.json()), 20'914'757'184);
  EXPECT_EQ(said_key(plan, "model.activation"), "quick_geglu");
  EXPECT_EQ(said_key(plan, "model.activation_func_clamp_value"), 7);
  EXPECT_EQ(said_key(plan, "model.window_attn_skip_freq"), Json({2}));
}

// SmolLM3Config: no_rope_layers has a 1 for a layer with positions.
TEST(HfConfig, KnowsWhichLayersHaveNoPositions) {
  const auto freq = [](const std::string& type, const Json& keys) {
    const Json config = {{"model_type", type}, {"num_hidden_layers", 8}};
    return said_key(hf_plan(and_keys(config, keys).dump()), "model.no_rope_freq");
  };
  EXPECT_EQ(freq("smollm3", Json::object()), Json({4}));
  EXPECT_EQ(freq("smollm3", {{"no_rope_layer_interval", 2}}), Json({2}));
  EXPECT_EQ(freq("smollm3", {{"no_rope_layers", {1, 0, 1, 1, 0, 1, 1, 1}}}),
            Json({0, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(freq("smollm3", {{"no_rope_layers", {1, 1, 1, 1, 1, 1, 1, 1}}}), Json());
  EXPECT_EQ(freq("cohere2", Json::object()), Json({4}));
  EXPECT_EQ(freq("exaone4", {{"sliding_window_pattern", "LG"}}), Json({2}));
  EXPECT_EQ(freq("exaone4", {{"sliding_window", nullptr}}), Json());
  EXPECT_EQ(freq("llama", Json::object()), Json());
}

TEST(HfConfig, KnowsWhichLayersHaveAWindow) {
  const auto freq = [](const std::string& type, const Json& keys) {
    const Json config = {
        {"model_type", type}, {"num_hidden_layers", 6}, {"max_position_embeddings", 8192}};
    return said_key(hf_plan(and_keys(config, keys).dump()), "model.window_attn_skip_freq");
  };
  const Json types = {"full_attention",
                      "sliding_attention",
                      "sliding_attention",
                      "full_attention",
                      "sliding_attention",
                      "sliding_attention"};
  EXPECT_EQ(freq("mistral", {{"sliding_window", 512}}), Json());
  EXPECT_EQ(freq("olmo3", Json::object()), Json({4}));
  EXPECT_EQ(freq("cohere2", {{"sliding_window_pattern", 3}}), Json({3}));
  EXPECT_EQ(freq("exaone4", {{"sliding_window_pattern", "LG"}}), Json({2}));
  EXPECT_EQ(freq("olmo3", {{"layer_types", types}}), Json({0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(freq("qwen2",
                 {{"use_sliding_window", true}, {"sliding_window", 512}, {"max_window_layers", 2}}),
            Json({0, 0, 1, 1, 1, 1}));
}

TEST(HfConfig, KnowsTheWindowOfAFamily) {
  const auto window = [](const Json& config) {
    return said_key(hf_plan(config.dump()), "model.sliding_window");
  };
  const auto of_phi = [&](int64_t tokens) {
    return window(
        {{"model_type", "phi3"}, {"max_position_embeddings", 4096}, {"sliding_window", tokens}});
  };
  EXPECT_EQ(of_phi(2047), 2047);
  EXPECT_EQ(of_phi(4096), 4096);
  EXPECT_EQ(of_phi(8192), Json());
  EXPECT_EQ(
      window(
          {{"model_type", "olmo3"}, {"num_hidden_layers", 1}, {"layer_types", {"full_attention"}}}),
      Json());
  EXPECT_EQ(window({{"model_type", "mistral"}, {"sliding_window", 4096}}), 4096);
  EXPECT_EQ(window({{"model_type", "mistral"}, {"sliding_window", nullptr}}), Json());
  EXPECT_EQ(window({{"model_type", "olmo3"}, {"max_position_embeddings", 8192}}), 4096);
  EXPECT_EQ(window({{"model_type", "qwen2"}, {"sliding_window", 32768}}), Json());
}

TEST(HfConfig, NamesTheOneThingThatIsMissing) {
  const auto of = [](const Json& config) { return hf_techniques(hf_plan(config.dump())); };
  const Json wide = {{"model_type", "opt"}, {"hidden_size", 1024}};
  EXPECT_EQ(of(and_keys(wide, {{"word_embed_proj_dim", 512}})), HfNames{"projected-embedding"});
  EXPECT_EQ(of(and_keys(wide, {{"word_embed_proj_dim", 1024}})), HfNames{});
  EXPECT_EQ(of({{"model_type", "opt"}, {"do_layer_norm_before", false}}),
            HfNames{"norm-after-sum"});
  EXPECT_EQ(of({{"model_type", "olmo"}, {"clip_qkv", 8.0}}), HfNames{"clipped-heads"});
  EXPECT_EQ(of({{"model_type", "cohere"}, {"use_qk_norm", true}}), HfNames{"norm-of-each-head"});
  EXPECT_EQ(of({{"model_type", "baichuan"}, {"num_attention_heads", 40}}), HfNames{"alibi"});
  EXPECT_EQ(of({{"model_type", "baichuan"}, {"num_attention_heads", 32}}), HfNames{});
  const std::pair<const char*, const char*> families[] = {{"jamba", "mamba"},
                                                          {"granitemoehybrid", "mamba"},
                                                          {"minimax", "linear-attention"},
                                                          {"recurrent_gemma", "recurrent-layers"},
                                                          {"lfm2", "convolution-layers"},
                                                          {"bloom", "alibi"},
                                                          {"qwen2_moe", "shared-expert-gate"},
                                                          {"gptj", "eager-attention"},
                                                          {"t5", "encoder-decoder"}};
  for (const auto& [type, technique] : families) {
    EXPECT_EQ(of({{"model_type", type}}), HfNames{technique}) << type;
  }
}

}  // namespace
}  // namespace sim
