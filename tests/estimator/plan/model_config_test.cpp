#include "estimator/plan/model_config.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

TEST(ModelPresets, HaveTheirPublishedParameterCounts) {
  EXPECT_EQ(model_presets().size(), 145u);
  for (const ModelPreset& preset : model_presets()) {
    EXPECT_EQ(parameter_count(preset.config, preset.config.vocab_size), preset.parameters)
        << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
  }
}

/// The counts that model cards and papers print, apart from the database.
TEST(ModelPresets, CountWhatTheirAuthorsPublished) {
  EXPECT_EQ(find_model_preset("gpt2")->parameters, 124439808);
  EXPECT_EQ(find_model_preset("llama3-8b")->parameters, 8030261248);
  EXPECT_EQ(find_model_preset("llama3-70b")->parameters, 70553706496);
  EXPECT_EQ(find_model_preset("llama3-405b")->parameters, 405853388800);
  EXPECT_EQ(find_model_preset("mistral-7b")->parameters, 7241732096);
  EXPECT_EQ(find_model_preset("qwen2.5-7b")->parameters, 7615616512);
  // Totals of the weights, as KerasHub's presets (gpt2-xl, gemma-*, phi-3-mini-4k), the hub's list
  // of tensors (qwen3-235b-a22b, olmo-2-*, smollm3-3b), the head of a GGUF file (phi-4) and a
  // loaded model (glm-4-9b) tell them.
  EXPECT_EQ(find_model_preset("gpt2-xl")->parameters, 1557611200);
  EXPECT_EQ(find_model_preset("gemma-7b")->parameters, 8537680896);
  EXPECT_EQ(find_model_preset("gemma-2-2b")->parameters, 2614341888);
  EXPECT_EQ(find_model_preset("gemma-3-1b")->parameters, 999885952);
  EXPECT_EQ(find_model_preset("gemma-3-4b")->parameters, 3880099328);
  EXPECT_EQ(find_model_preset("phi-3-mini-4k")->parameters, 3821079552);
  EXPECT_EQ(find_model_preset("qwen3-235b-a22b")->parameters, 235093634560);
  EXPECT_EQ(find_model_preset("olmo-2-7b")->parameters, 7298617344);
  EXPECT_EQ(find_model_preset("olmo-2-13b")->parameters, 13716198400);
  EXPECT_EQ(find_model_preset("smollm3-3b")->parameters, 3075098624);
  EXPECT_EQ(find_model_preset("phi-4")->parameters, 14659507200);
  EXPECT_EQ(find_model_preset("glm-4-9b")->parameters, 9399951360);
  // GPT-NeoX's paper (20,554,567,680), LLaMA's (6.7B to 65.2B) and Pythia's (table 1).
  EXPECT_EQ(find_model_preset("gpt-neox-20b")->parameters, 20554567680);
  EXPECT_EQ(find_model_preset("llama-7b")->parameters, 6738415616);
  EXPECT_EQ(find_model_preset("llama-65b")->parameters, 65285660672);
  EXPECT_EQ(find_model_preset("pythia-70m")->parameters, 70426624);
  EXPECT_EQ(find_model_preset("pythia-12b")->parameters, 11846072320);
  EXPECT_EQ(find_model_preset("mistral-7b-v0.3")->parameters, 7248023552);
}

/// What no count of parameters tells: Qwen2.5's epsilon grows with the model, and Qwen3's router
/// makes the weights of the experts that it chose sum to one (norm_topk_prob), so it takes the
/// softmax after the choice.
TEST(ModelPresets, HaveTheNormsAndRoutersOfTheirAuthors) {
  for (const char* name : {"qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-3b", "qwen2.5-7b"}) {
    EXPECT_EQ(find_model_preset(name)->config.norm_epsilon, 1e-6) << name;
  }
  for (const char* name : {"qwen2.5-14b", "qwen2.5-32b", "qwen2.5-72b"}) {
    EXPECT_EQ(find_model_preset(name)->config.norm_epsilon, 1e-5) << name;
  }
  for (const char* name : {"qwen3-30b-a3b", "qwen3-235b-a22b"}) {
    EXPECT_FALSE(find_model_preset(name)->config.moe_router_pre_softmax) << name;
  }
}

TEST(ModelPresets, AreFoundByAliasAndAnyCase) {
  EXPECT_EQ(find_model_preset("GPT3")->name, "gpt3-175b");
  EXPECT_EQ(find_model_preset("Llama-3.1-8B")->name, "llama3.1-8b");
  EXPECT_EQ(find_model_preset("llama4"), nullptr);
}

// Their config.json: 8,192 positions in Llama 3, 131,072 in 3.1 and 3.3.
TEST(ModelPresets, HaveThePositionsOfTheirVersion) {
  EXPECT_EQ(find_model_preset("llama3-8b")->config.max_position_embeddings, 8192);
  for (const char* name : {"llama3.1-8b", "llama-3.1-70b", "llama3.3-70b", "llama3.1-405b"}) {
    EXPECT_EQ(find_model_preset(name)->config.max_position_embeddings, 131'072) << name;
  }
}

TEST(ModelConfig, DerivesMegatronsDefaults) {
  ModelConfig model;
  model.hidden_size = 4096;
  model.num_attention_heads = 32;
  EXPECT_EQ(with_derived_fields(model).ffn_hidden_size, 4 * 4096);
  EXPECT_EQ(with_derived_fields(model).num_query_groups, 32);
  EXPECT_EQ(with_derived_fields(model).kv_channels, 128);
  model.activation = Activation::kSwiglu;
  EXPECT_EQ(with_derived_fields(model).ffn_hidden_size, 10880);  // 64 x floor(8 x 4096 / 3 / 64)
}

// h = 4, 2 heads of 2, 1 key/value head, ffn 8, LayerNorm. Norms 2 x 8; QKV 4 x (4 + 2 + 2) + 8;
// projection 16 + 4; MLP 32 + 8 and 32 + 4.
TEST(ModelConfig, CountsALayerByHand) {
  ModelConfig model;
  model.num_layers = 2;
  model.hidden_size = 4;
  model.num_attention_heads = 2;
  model.num_query_groups = 1;
  model.ffn_hidden_size = 8;
  model.max_position_embeddings = 16;
  model.tie_embeddings = false;
  model = with_derived_fields(model);
  EXPECT_EQ(layer_parameter_count(model, 0), 16 + 40 + 20 + 40 + 36);
  // Final norm 8, positions 16 x 4, embedding and head 10 x 4 each.
  EXPECT_EQ(parameter_count(model, 10), 2 * 152 + 8 + 64 + 80);
  model.tie_embeddings = true;
  EXPECT_EQ(parameter_count(model, 10), 2 * 152 + 8 + 64 + 40);
  model.add_bias_linear = false;
  EXPECT_EQ(layer_parameter_count(model, 0), 16 + 32 + 16 + 32 + 32);
  model.add_qkv_bias = true;
  EXPECT_EQ(layer_parameter_count(model, 0), 16 + 40 + 16 + 32 + 32);
}

// Embedding 10 x 4; a layer of 16 without norms: each matrix of attention and MLP has 4 x 4
// elements for 2 heads of 2, or 4 x 8.
TEST(ModelConfig, CountsTheNormsAndBiasesOfItsLayers) {
  ModelConfig model;
  model.num_layers = 1;
  model.hidden_size = 4;
  model.num_attention_heads = 2;
  model.ffn_hidden_size = 8;
  model.position_embedding = PositionEmbedding::kRope;
  model.add_bias_linear = false;
  model = with_derived_fields(model);
  const int64_t products = 4 * 16 + 2 * 32;
  EXPECT_EQ(layer_parameter_count(model, 0), products + 2 * 8);
  model.norm_position = NormPosition::kAfter;
  EXPECT_EQ(layer_parameter_count(model, 0), products + 2 * 8);
  model.norm_position = NormPosition::kBoth;
  EXPECT_EQ(layer_parameter_count(model, 0), products + 4 * 8);
  model.norm_parameters = NormParameters::kWeight;
  EXPECT_EQ(layer_parameter_count(model, 0), products + 4 * 4);
  model.norm_parameters = NormParameters::kNone;
  EXPECT_EQ(layer_parameter_count(model, 0), products);
  EXPECT_EQ(parameter_count(model, 10), products + 40);
  model.add_output_bias = true;
  EXPECT_EQ(parameter_count(model, 10), products + 40 + 10);
  model.add_attention_bias = true;
  EXPECT_EQ(layer_parameter_count(model, 0), products + 12 + 4);
  model.add_mlp_bias = true;
  EXPECT_EQ(layer_parameter_count(model, 0), products + 12 + 4 + 8 + 4);
}

TEST(ModelConfig, KnowsWhichLayersHaveRotaryPositions) {
  ModelConfig model;
  model.num_layers = 4;
  const auto layers = [&] {
    std::vector<bool> has;
    for (int64_t layer = 0; layer < 4; ++layer) has.push_back(model.has_rope_in(layer));
    return has;
  };
  EXPECT_EQ(layers(), (std::vector<bool>{true, true, true, true}));
  model.no_rope_freq = {2};
  EXPECT_EQ(layers(), (std::vector<bool>{true, false, true, false}));
  model.no_rope_freq = {1, 0, 0, 1};
  EXPECT_EQ(layers(), (std::vector<bool>{false, true, true, false}));
}

// 8,190,735,360 parameters of Qwen3-8B, as its weights on Hugging Face add up.
TEST(ModelConfig, CountsNormsOfQueriesAndKeysOfEachHead) {
  ModelConfig model;
  model.num_layers = 36;
  model.hidden_size = 4096;
  model.ffn_hidden_size = 12288;
  model.num_attention_heads = 32;
  model.num_query_groups = 8;
  model.kv_channels = 128;
  model.tie_embeddings = false;
  model.normalization = Normalization::kRmsNorm;
  model.activation = Activation::kSwiglu;
  model.position_embedding = PositionEmbedding::kRope;
  model.add_bias_linear = false;
  model.qk_layernorm = true;
  EXPECT_EQ(parameter_count(with_derived_fields(model), 151936), 8'190'735'360);
  model.qk_layernorm = false;
  EXPECT_EQ(parameter_count(with_derived_fields(model), 151936), 8'190'735'360 - 36 * 2 * 128);
}

TEST(ModelPresets, AreFoundByNamesOfAHub) {
  EXPECT_EQ(bare_model_name("meta-llama/Meta-Llama-3.1-8B-Instruct"), "Llama-3.1-8B");
  for (const auto& [name, preset] :
       {std::pair{"meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b"},
        std::pair{"meta-llama/Llama-3.3-70B-Instruct", "llama3.1-70b"},
        std::pair{"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
        std::pair{"Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3-235b-a22b"},
        std::pair{"Qwen/Qwen2-0.5B", "qwen2.5-0.5b"},
        std::pair{"deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"},
        std::pair{"deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"},
        std::pair{"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"},
        std::pair{"mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo-12b"},
        std::pair{"google/gemma-2b-it", "gemma-2b"},
        std::pair{"mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2"},
        std::pair{"mistralai/Mistral-7B-v0.3", "mistral-7b-v0.3"},
        std::pair{"THUDM/GLM-4-9B-0414", "glm-4-9b-0414"},
        std::pair{"moonshotai/Kimi-K2-Instruct-0905", "kimi-k2"},
        std::pair{"lmsys/vicuna-13b-v1.5", "llama2-13b"},
        std::pair{"codellama/CodeLlama-34b-Instruct-hf", "codellama-34b"},
        std::pair{"CohereForAI/c4ai-command-r7b-12-2024", "command-r7b"}}) {
    const ModelPreset* found = find_model_preset(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->name, preset);
  }
  // Another shape: all heads have keys of their own.
  EXPECT_EQ(find_model_preset("Qwen/Qwen"), nullptr);
  EXPECT_EQ(find_model_preset("-instruct"), nullptr);
}

/// DeepSeek's attention: heads of 128, 64 more with positions, values of 128, a latent of 512.
ModelConfig deepseek(int64_t hidden, int64_t heads, int64_t query_latent) {
  ModelConfig model;
  model.hidden_size = hidden;
  model.num_attention_heads = heads;
  model.normalization = Normalization::kRmsNorm;
  model.add_bias_linear = false;
  model.multi_latent_attention = true;
  model.q_lora_rank = query_latent;
  model.qk_layernorm = true;
  return with_derived_fields(model);
}

// The published totals less everything else: 15,706,484,224 parameters of DeepSeek-V2-Lite (27
// layers, the first of 10,944, the others of 64 + 2 experts of 1,408 and a router) and
// 671,026,419,200 of DeepSeek-V3 (61 layers, three of 18,432, the others of 256 + 1 experts of
// 2,048 and a router with a bias for each expert), as their weights on Hugging Face add up (without
// V3's layer for a second token).
TEST(ModelConfig, CountsDeepSeeksLatentAttention) {
  const int64_t lite = 2048, v3 = 7168;
  const int64_t lite_rest = 2 * 102400 * lite + lite + 27 * 2 * lite + 3 * lite * 10944 +
                            26 * (66 * 3 * lite * 1408 + 64 * lite);
  EXPECT_EQ(27 * attention_parameter_count(deepseek(lite, 16, 0)), 15706484224 - lite_rest);
  const int64_t v3_rest = 2 * 129280 * v3 + v3 + 61 * 2 * v3 + 3 * 3 * v3 * 18432 +
                          58 * (257 * 3 * v3 * 2048 + 256 * v3 + 256);
  EXPECT_EQ(61 * attention_parameter_count(deepseek(v3, 128, 1536)), 671026419200 - v3_rest);
}

// A layer with experts, 7,168 x 2 x 7,168 of the projection and three norms. The experts: 257 of 3
// x 7,168 x 2,048 and a router of 256 x 7,168; attention: 187,107,328; two norms of its own.
TEST(ModelConfig, CountsDeepSeeksLayerOfMultiTokenPrediction) {
  ModelConfig model = find_model_preset("deepseek-v3")->config;
  const int64_t without = parameter_count(model, 129280);
  model.mtp_num_layers = 1;
  EXPECT_EQ(parameter_count(model, 129280) - without,
            11'318'329'344 + 1'835'008 + 187'107'328 + 2 * 7168 + 102'760'448 + 3 * 7168);
  EXPECT_EQ(model.expert_layers(), 59);  // the first three of 61 are dense
}

TEST(ModelConfig, CountsNoNormsOfLatentsThatHaveNone) {
  ModelConfig model = deepseek(7168, 128, 1536);
  const int64_t with_norms = attention_parameter_count(model);
  model.qk_layernorm = false;
  EXPECT_EQ(with_norms - attention_parameter_count(model), 1536 + 512);
}

}  // namespace
}  // namespace estimator
