// Activation bytes of a GPT layer against Korthikanti et al. 2022, "Reducing Activation
// Recomputation in Large Transformer Models", equations 1, 2, 4 and section 5.
//
// The paper leaves out what each row of a LayerNorm keeps for backward: mean and reciprocal
// deviation in fp32, two norms a layer. That is 16 s b bytes, 16 s b / t under sequence
// parallelism. Nothing else differs.
#include <gtest/gtest.h>

#include "tests/sim/rank/executed_rank.h"

namespace sim::activation_formulas {  // where the formulas' letters mean its sizes
namespace {

using estimator::Json;

constexpr double s = 512, b = 4, h = 1024, a = 16, t = 4;
constexpr double kLayerNormRows = 16 * s * b;

/// What one more layer adds to the activations of a micro-batch.
double layer_bytes(Json changes) {
  const auto with_layers = [&](int64_t layers) {
    changes["model"]["num_layers"] = layers;
    return execute(gpt_plan(changes)).micro_batches.activation_bytes.value();
  };
  return static_cast<double>(with_layers(3) - with_layers(2));
}

Json four_tensor_ranks(bool sequence_parallel) {
  return {{"cluster", {{"gpus_per_node", 4}}},
          {"parallelism", {{"tensor", 4}, {"sequence_parallel", sequence_parallel}}}};
}

Json with_recompute(Json changes, const char* recompute) {
  changes["training"]["recompute"] = recompute;
  return changes;
}

TEST(GptLayerActivations, AreThePapersOnOneRank) {
  EXPECT_EQ(layer_bytes({}), s * b * h * (34 + 5 * a * s / h) + kLayerNormRows);
}

TEST(GptLayerActivations, AreTheSameInThePlainFramework) {
  EXPECT_EQ(layer_bytes({{"training", {{"framework", "plain"}}}}),
            s * b * h * (34 + 5 * a * s / h) + kLayerNormRows);
}

TEST(GptLayerActivations, AreThePapersUnderTensorParallelism) {
  EXPECT_EQ(layer_bytes(four_tensor_ranks(false)),
            s * b * h * (10 + 24 / t + 5 * a * s / (h * t)) + kLayerNormRows);
}

TEST(GptLayerActivations, AreThePapersUnderSequenceParallelism) {
  EXPECT_EQ(layer_bytes(four_tensor_ranks(true)),
            s * b * h / t * (34 + 5 * a * s / h) + kLayerNormRows / t);
}

TEST(GptLayerActivations, LoseTheAttentionTermToSelectiveRecompute) {
  EXPECT_EQ(layer_bytes(with_recompute(four_tensor_ranks(true), "selective")),
            34 * s * b * h / t + kLayerNormRows / t);
}

// Under selective recompute value is a view of query, key and value as the product wrote them:
// _checkpointed_attention_forward in megatron/core/transformer/attention.py keeps it, and with it
// the product. Rotary positions make another query and another key.
TEST(GptLayerActivations, KeepTheWholeProductUnderSelectiveRecompute) {
  const auto selective = [](const char* positions) {
    return layer_bytes(
        with_recompute({{"model", {{"position_embedding", positions}}}}, "selective"));
  };
  EXPECT_EQ(selective("rope") - selective("learned_absolute"), 2 * 2 * s * b * h);
}

// The norm of a local layer's keys is given a view of the product, and keeps all of that: twice h
// for a group of two queries. That of its queries is given a copy. Each has two numbers for a row.
TEST(GptLayerActivations, KeepTheWholeProductForTheNormOfLocalKeys) {
  constexpr int64_t kGroups = static_cast<int64_t>(a) / 2;
  const auto bytes = [&](bool has_norms, const char* recompute) {
    return layer_bytes({{"model", {{"num_query_groups", kGroups}, {"qk_layernorm", has_norms}}},
                        {"training", {{"transformer_impl", "local"}, {"recompute", recompute}}}});
  };
  constexpr double kRows = 8 * s * b * (a + kGroups), kQuery = 2 * s * b * h;
  EXPECT_EQ(bytes(true, "none") - bytes(false, "none"), kQuery + 2 * kQuery + kRows);
  // What runs again is given the same view as value, and the keys.
  EXPECT_EQ(bytes(true, "selective") - bytes(false, "selective"), kQuery + kQuery / 2 + kRows);
}

Json with_modules(Json changes, const char* module) {
  changes["training"]["recompute"] = "selective";
  changes["training"]["recompute_modules"] = Json::array({module});
  return changes;
}

// An MLP that is run again keeps its input, which is kept as the residual, too: neither norm (2 sbh
// and 8 sb of its rows) nor both matrices' inputs (8 sbh each). TransformerEngine's first matrix
// has the norm; local layers have it outside of what is run again.
TEST(GptLayerActivations, LoseTheMlpToItsRecompute) {
  const Json unbiased = {{"model", {{"add_bias_linear", false}}}};
  EXPECT_EQ(layer_bytes(with_modules(unbiased, "mlp")),
            s * b * h * (34 - 18 + 5 * a * s / h) + kLayerNormRows / 2);
  Json local = unbiased;
  local["training"]["transformer_impl"] = "local";
  EXPECT_EQ(layer_bytes(with_modules(local, "mlp")) - layer_bytes(local), -16 * s * b * h);
}

TEST(GptLayerActivations, LoseTheNormsThatAreLayersOfTheirOwnToTheirRecompute) {
  EXPECT_EQ(layer_bytes(with_modules({}, "layernorm")), layer_bytes({}));
  const Json local = {{"training", {{"transformer_impl", "local"}}}};
  EXPECT_EQ(layer_bytes(with_modules(local, "layernorm")) - layer_bytes(local),
            -4 * s * b * h - kLayerNormRows);
}

// Both norms read the layer's input; what attention adds to it is not kept. One norm has one
// output. Before their sum the tensor ranks have the whole sequence, and so the masks of dropout.
TEST(GptLayerActivations, AreFewerOfAttentionAndMlpInParallel) {
  const auto parallel = [](Json changes, bool tied) {
    changes["model"] = {{"parallel_residual", true}, {"tied_layernorm", tied}};
    changes["training"]["framework"] = "plain";
    return layer_bytes(changes);
  };
  EXPECT_EQ(parallel({}, false), s * b * h * (32 + 5 * a * s / h) + kLayerNormRows);
  EXPECT_EQ(parallel({}, true), s * b * h * (30 + 5 * a * s / h) + kLayerNormRows / 2);
  EXPECT_EQ(parallel(four_tensor_ranks(true), false),
            s * b * h * (30 / t + 2 + 5 * a * s / (h * t)) + kLayerNormRows / t);
}

// A norm keeps its input, and two numbers for each row, wherever it is; before the MLP that is what
// attention was added to, after attention what is added.
TEST(GptLayerActivations, HaveTheInputsOfTheirNorms) {
  const auto with_norms = [](const char* position) {
    return layer_bytes(
        {{"model", {{"norm_position", position}}}, {"training", {{"framework", "plain"}}}});
  };
  EXPECT_EQ(with_norms("after"), with_norms("before"));
  EXPECT_EQ(with_norms("both") - with_norms("before"), 2 * 2 * s * b * h + kLayerNormRows);
}

// Where a rank has one group the query is a view of the product, which TransformerEngine copies as
// it copies key and value (get_qkv_layout in attention/dot_product_attention/utils.py).
// combine_and_quantize() in transformer_engine/pytorch/attention/dot_product_attention/utils.py:
// query, key and value are kept twice in a byte, as much as in 16 bits, each copy with a byte for
// 32 elements, padded to 4 for a row of a head (64 wide: 2) and to 128 for a block of rows (64).
TEST(GptLayerActivations, HaveScalesOfAttentionInEightBits) {
  const auto bytes = [](bool in_eight_bits) {
    return layer_bytes({{"cluster", {{"gpu", "b200"}}},
                        {"model", {{"attention_dropout", 0}}},
                        {"training",
                         {{"attention", "fused"},
                          {"dtype", "bf16"},
                          {"fp8_format", "e4m3"},
                          {"fp8_recipe", "mxfp8"},
                          {"fp8_dot_product_attention", in_eight_bits}}}});
  };
  constexpr double kSeed = 512;  // PyTorch's kernel has a tensor for it beside the offset
  EXPECT_EQ(bytes(true) - bytes(false), 3 * b * a * (s * 4 + s / 32 * 128) - kSeed);
}

TEST(GptLayerActivations, KeepNoProductWhereAllQueriesAreOfOneGroup) {
  const auto of_groups = [](int64_t groups) {
    return layer_bytes(
        {{"model", {{"num_query_groups", groups}}}, {"training", {{"attention", "fused"}}}});
  };
  EXPECT_EQ(of_groups(2) - of_groups(1), 2 * 2 * s * b * h / a);
}

// Of 18 heads TransformerEngine's kernel takes no scores (is_kernel_available in attention/
// dot_product_attention/softmax.py asks for a multiple of 4): forward_torch_softmax keeps fp32
// weights in place of 16-bit ones, and a mask.
TEST(GptLayerActivations, AreFp32WeightsWhereTransformerEnginesSoftmaxDoesNotRun) {
  constexpr double kHeads = 18, kWidth = kHeads * 64;
  const Json changes = {{"model", {{"hidden_size", kWidth}, {"num_attention_heads", kHeads}}},
                        {"training", {{"micro_batch_size", 1}, {"global_batch_size", 4}}}};
  EXPECT_EQ(layer_bytes(changes),
            s * kWidth * 34 + (5 + 2) * kHeads * s * s + s * s + kLayerNormRows / b);
  Json local = changes;
  local["training"]["transformer_impl"] = "local";
  EXPECT_EQ(layer_bytes(local), s * kWidth * 34 + (5 + 2) * kHeads * s * s + kLayerNormRows / b);
}

/// What one layer of a GPT keeps more if an option of the training is off.
double kept_without(const char* fusion, const Json& changes) {
  Json without = changes;
  without["training"][fusion] = false;
  return layer_bytes(without) - layer_bytes(changes);
}

// Without fusion SwiGLU keeps silu(gate) and up + 0, each of 2,688 columns in 16 bits (glu() in
// megatron/core/transformer/mlp.py); GELU keeps the sum with the bias in place of the product.
TEST(GptLayerActivations, HaveBothFactorsOfSwigluWithoutFusion) {
  const Json gated = {{"model", {{"activation", "swiglu"}}}};
  EXPECT_EQ(kept_without("bias_swiglu_fusion", gated), 2 * 2 * s * b * 2688);
  EXPECT_EQ(kept_without("bias_gelu_fusion", gated), 0);
  EXPECT_EQ(kept_without("bias_gelu_fusion", {}), 0);
}

TEST(GptLayerActivations, MayHaveTheInputOfSwigluInEightBits) {
  const Json gated = {{"model", {{"activation", "swiglu"}}},
                      {"training", {{"activation_func_fp8_input_store", true}}}};
  EXPECT_EQ(kept_without("activation_func_fp8_input_store", gated), 2 * 2688 * s * b);
}

// NewGELUActivation of transformers keeps, of [s, b, 4 h], half of its input, the hyperbolic
// tangent and one more than that, beside the input and the result of gelu. Under autocast pow()
// keeps its input in fp32 in place of 16 bits, and the tangent and one more than that are in fp32,
// too.
TEST(GptLayerActivations, HaveTheOperandsOfTransformersOwnGelu) {
  const auto kept = [](const char* activation, const char* framework, bool mixed) {
    return layer_bytes(
        {{"model", {{"activation", activation}}},
         {"training", {{"framework", framework}, {"dtype", "bf16"}, {"mixed_precision", mixed}}}});
  };
  const auto more = [&](const char* framework, bool mixed) {
    return kept("gelu_new", framework, mixed) - kept("gelu", framework, mixed);
  };
  EXPECT_EQ(more("transformers", false), 3 * 2 * s * b * 4 * h);
  EXPECT_EQ(more("transformers", true), (2 + 4 + 4 + (4 - 2)) * s * b * 4 * h);
  EXPECT_EQ(more("megatron-lm", false), 0);
}

// The query and the key each keep a cosine and a sine of their own, [s, 1, 1, h / a] in 16 bits.
TEST(GptLayerActivations, HaveTablesOfEachUseOfRotaryPositionsWithoutFusion) {
  EXPECT_EQ(kept_without("rope_fusion", {{"model", {{"position_embedding", "rope"}}}}),
            2 * 2 * 2 * s * h / a);
  EXPECT_EQ(kept_without("rope_fusion",
                         {{"model", {{"position_embedding", "rope"}, {"rotary_percent", 0.5}}}}),
            2 * 2 * 2 * s * h / a / 2);
}

// forward_torch_softmax in megatron/core/fusions/fused_softmax.py keeps fp32 weights.
TEST(GptLayerActivations, AreFp32WeightsOfLocalLayersWithoutFusionOfTheSoftmax) {
  EXPECT_EQ(kept_without("masked_softmax_fusion", {{"training", {{"transformer_impl", "local"}}}}),
            2 * a * s * s * b);
  EXPECT_EQ(kept_without("masked_softmax_fusion", {}), 0);
}

// forward_torch_softmax in megatron/model/fused_softmax.py of GPT-NeoX, where softmax_in_fp32 is
// false, keeps 16-bit weights alone, as its kernel does.
TEST(GptLayerActivations, AreShortWeightsOfASoftmaxThatIsNotInFp32) {
  const Json neox = {
      {"training", {{"framework", "megatron-deepspeed"}, {"attention_softmax_in_fp32", false}}}};
  EXPECT_EQ(kept_without("masked_softmax_fusion", neox), 0);
  Json wide = neox;
  wide["training"]["attention_softmax_in_fp32"] = true;
  EXPECT_EQ(kept_without("masked_softmax_fusion", wide), 2 * a * s * s * b);
}

// is_kernel_available in fused_softmax.py: at most 4,096 keys (2,048 in GPT-NeoX), and 16-bit
// scores. What is beyond keeps fp32 weights beside those in 16 bits, which the next product reads.
TEST(GptLayerActivations, AreFp32WeightsBeyondTheKeysOfMegatronsOwnSoftmax) {
  constexpr double kHeads = 4, kWidth = kHeads * 16;
  const auto weights = [&](const char* framework, double keys) {
    const double kept =
        layer_bytes({{"model",
                      {{"hidden_size", kWidth},
                       {"num_attention_heads", kHeads},
                       {"attention_dropout", 0},
                       {"max_position_embeddings", keys}}},
                     {"training",
                      {{"framework", framework},
                       {"transformer_impl",
                        framework == std::string("megatron-lm") ? "local" : "transformer_engine"},
                       {"sequence_length", keys},
                       {"micro_batch_size", 1},
                       {"global_batch_size", 4}}}});
    return (kept - keys * kWidth * 34 - 16 * keys) / (kHeads * keys * keys);
  };
  EXPECT_EQ(weights("megatron-lm", 4096), 2);
  EXPECT_EQ(weights("megatron-lm", 4224), 4 + 2);
  EXPECT_EQ(weights("megatron-deepspeed", 2048), 2);
  EXPECT_EQ(weights("megatron-deepspeed", 2176), 4 + 2);
}

// Norms keep copies of the query and the key in 16 bits, and two fp32 numbers for each row of a
// head.
TEST(GptLayerActivations, HaveInputsAndRowsOfNormsOfQueriesAndKeys) {
  EXPECT_EQ(layer_bytes({{"model", {{"qk_layernorm", true}}}}) - layer_bytes({}),
            2 * 2 * s * b * h + 2 * 8 * s * b * a);
}

// Inductor pads the rows of the two masks of hidden dropout, 1,088 bytes, to 1,152 (config.py:
// padding_alignment_bytes = 128).
TEST(GptLayerActivations, HavePaddedMasksOfCompiledDropout) {
  const auto with_dropout = [](const char* framework, double probability) {
    return layer_bytes({{"model",
                         {{"hidden_size", 1088},
                          {"num_attention_heads", 16},
                          {"kv_channels", 64},
                          {"hidden_dropout", probability}}},
                        {"training", {{"framework", framework}, {"attention", "fused"}}},
                        {"cluster", {{"gpu", "h100"}}}});
  };
  EXPECT_EQ(with_dropout("megatron-lm", 0.1) - with_dropout("megatron-lm", 0), 2 * s * b * 1152);
  EXPECT_EQ(with_dropout("plain", 0.1) - with_dropout("plain", 0), 2 * s * b * 1088);
}

TEST(GptLayerActivations, AreTheInputAloneUnderFullRecompute) {
  EXPECT_EQ(layer_bytes(with_recompute({}, "full")), 2 * s * b * h);
}

// Of the third layer. With three layers as one checkpoint it adds nothing.
TEST(GptLayerActivations, AreTheInputAloneInABlockOrOfSeveralLayersTogether) {
  const auto third_layer = [](const char* method, int64_t layers) {
    Json changes = with_recompute({}, "full");
    changes["training"]["recompute_method"] = method;
    changes["training"]["recompute_num_layers"] = layers;
    return layer_bytes(changes);
  };
  EXPECT_EQ(third_layer("block", 2), layer_bytes({}));
  EXPECT_EQ(third_layer("block", 3), 2 * s * b * h);
  EXPECT_EQ(third_layer("uniform", 2), 2 * s * b * h);
  EXPECT_EQ(third_layer("uniform", 3), 0);
}

// Each tensor rank keeps its part of the input, and gathers one layer's parts at a time.
TEST(GptLayerActivations, AreAPartOfTheInputWhereTensorRanksDivideIt) {
  for (const char* framework : {"megatron-lm", "megatron-deepspeed"}) {
    Json divided = with_recompute(four_tensor_ranks(false), "full");
    divided["training"]["framework"] = framework;
    EXPECT_EQ(layer_bytes(divided), 2 * s * b * h) << framework;
    divided["training"]["distribute_saved_activations"] = true;
    EXPECT_EQ(layer_bytes(divided), 2 * s * b * h / t) << framework;
  }
}

TEST(GptLayerActivations, OfTheFirstFlashAttentionAreThoseOfTheSecond) {
  EXPECT_EQ(layer_bytes({{"training", {{"attention", "flash1"}}}}),
            layer_bytes({{"training", {{"attention", "flash"}}}}));
}

/// Fused attention and rotary positions, in Megatron-LM's way.
Json fused_rotary(const Json& changes = Json::object()) {
  Json all = {{"model", {{"position_embedding", "rope"}}},
              {"training", {{"attention", "fused"}}},
              {"cluster", {{"gpu", "h100"}}}};
  all.merge_patch(changes);
  return all;
}

Json latent_attention(const Json& changes = Json::object()) {
  Json all = fused_rotary(Json::parse(R"({"model": {"multi_latent_attention": true,
    "q_lora_rank": 256, "kv_lora_rank": 128, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64,
    "v_head_dim": 128, "qk_layernorm": true}})"));
  all.merge_patch(changes);
  return all;
}

constexpr double kSeedAndOffset = 2 * 512;  // of one call's dropout: a block each

constexpr double kQueryLatent = 256, kKeyValueLatent = 128, kKey = 192, kValue = 128;

// Instead of query, key, value and output, each s b h of two bytes: both latents and what their
// norms make of them, mean and deviation of each of their rows, and wider heads. The
// memory-efficient kernel, which stands for cuDNN's here, keeps seed and offset on the host.
TEST(LatentAttentionActivations, AreTheLatentsTheirNormsAndTheHeads) {
  EXPECT_EQ(layer_bytes(latent_attention()) - layer_bytes(fused_rotary()),
            s * b * (4 * (kQueryLatent + kKeyValueLatent) + 16 + 4 * a * (kKey + kValue)) -
                8 * s * b * h - kSeedAndOffset);
}

TEST(LatentAttentionActivations, AreSplitOverTheTensorRanks) {
  EXPECT_EQ(layer_bytes(latent_attention(four_tensor_ranks(true))) -
                layer_bytes(fused_rotary(four_tensor_ranks(true))),
            (s * b * (4 * (kQueryLatent + kKeyValueLatent) + 16 + 4 * a * (kKey + kValue)) -
             8 * s * b * h) /
                    t -
                kSeedAndOffset);
}

TEST(LatentAttentionActivations, OfQueriesWithoutALatentAreFewer) {
  const Json direct = {{"model", {{"q_lora_rank", 0}}}};
  EXPECT_EQ(layer_bytes(latent_attention()) - layer_bytes(latent_attention(direct)),
            s * b * (4 * kQueryLatent + 8));
}

Json two_context_ranks(const char* comm) {
  return {{"cluster", {{"gpus_per_node", 2}}},
          {"parallelism", {{"context", 2}, {"context_comm", comm}}},
          {"model", {{"max_position_embeddings", 2 * s}}},
          {"training", {{"attention", "fused"}, {"sequence_length", 2 * s}}}};
}

// The query, the keys and values that came last, and one output: what attention of the rank's own
// rows alone would keep. A seed and an offset for each of two steps.
TEST(ContextActivations, OfARingAreThoseOfItsRowsAlone) {
  EXPECT_EQ(layer_bytes(two_context_ranks("p2p")),
            layer_bytes({{"training", {{"attention", "fused"}}}}) + kSeedAndOffset);
}

// The output by heads is kept for attention, the output by rows for the projection.
TEST(ContextActivations, OfAnExchangeOfHeadsAreOneOutputMore) {
  EXPECT_EQ(layer_bytes(two_context_ranks("a2a")),
            layer_bytes({{"training", {{"attention", "fused"}}}}) + 2 * s * b * h);
}

// Attention alone: hardly an MLP, hardly a vocabulary.
TEST(ContextActivations, OfARingPeakHigherFromRankToRank) {
  const auto plan = gpt_plan({{"model",
                               {{"ffn_hidden_size", 16},
                                {"vocab_size", 128},
                                {"hidden_dropout", 0},
                                {"max_position_embeddings", 16 * s}}},
                              {"cluster", {{"gpus_per_node", 8}}},
                              {"parallelism", {{"context", 8}}},
                              {"training", {{"attention", "fused"}, {"sequence_length", 16 * s}}}});
  const auto peak = [&](int64_t rank) { return execute(plan, rank).peak.allocated_bytes; };
  EXPECT_LT(peak(0), peak(3));
  EXPECT_LT(peak(3), peak(7));
}

TEST(PipelineActivations, OfTheFirstStageOf1f1bAreOfAsManyMicroBatchesAsStages) {
  const Json pipeline = {{"model", {{"num_layers", 4}}},
                         {"cluster", {{"gpus_per_node", 4}}},
                         {"parallelism", {{"pipeline", 4}}},
                         {"training", {{"global_batch_size", 32}}}};
  const auto first = execute(gpt_plan(pipeline), 0);
  EXPECT_EQ(first.micro_batches.total, 8);
  EXPECT_EQ(first.micro_batches.executed, 6);  // in flight and two more
  EXPECT_EQ(first.micro_batches.most_in_flight, 4);
  EXPECT_EQ(execute(gpt_plan(pipeline), 2).micro_batches.most_in_flight, 2);
  EXPECT_EQ(execute(gpt_plan(pipeline), 3).micro_batches.most_in_flight, 1);
}

TEST(PipelineActivations, OfTheFirstStageAreNeverOfMoreMicroBatchesThanThereAre) {
  const Json pipeline = {{"model", {{"num_layers", 4}}},
                         {"cluster", {{"gpus_per_node", 4}}},
                         {"parallelism", {{"pipeline", 4}}},
                         {"training", {{"global_batch_size", 8}}}};
  EXPECT_EQ(execute(gpt_plan(pipeline), 0).micro_batches.most_in_flight, 2);
}

/// Four stages of two chunks of one layer, 8 micro-batches.
Json interleaved() {
  return {{"model", {{"num_layers", 8}}},
          {"cluster", {{"gpus_per_node", 4}}},
          {"parallelism", {{"pipeline", 4}, {"virtual_stages", 2}}},
          {"training", {{"global_batch_size", 32}}}};
}

// Megatron-LM's warm-up of 2 (p - r - 1) + (v - 1) p forwards, and the one after it.
TEST(PipelineActivations, OfAnInterleavedStageAreOfItsWarmUpAndOneMore) {
  for (const int64_t stage : {0, 1, 3}) {
    const auto profile = execute(gpt_plan(interleaved()), stage);
    EXPECT_EQ(profile.micro_batches.most_in_flight, 2 * (3 - stage) + 4 + 1);
    EXPECT_EQ(profile.micro_batches.executed, 8);
  }
}

// A middle stage holds 2 more chunks than the one after it. Both hold equal layers alone, and their
// peaks come at the same place of a micro-batch. By then the third stage has done with what its
// warm-up received last, the seventh input, which lasts with its gradient; the second one, whose
// ninth input that is, has not.
TEST(PipelineActivations, OfChunksInFlightAreWhatThePeakIsMadeOf) {
  const auto second = execute(gpt_plan(interleaved()), 1);
  const auto third = execute(gpt_plan(interleaved()), 2);
  EXPECT_EQ(second.parameters.count, third.parameters.count);
  EXPECT_EQ(
      second.peak.allocated_bytes - third.peak.allocated_bytes,
      2 * second.micro_batches.activation_bytes.value() - static_cast<int64_t>(2 * 2 * s * b * h));
}

TEST(PipelineActivations, OfGpipeAreOfAllMicroBatches) {
  const Json pipeline = {{"cluster", {{"gpus_per_node", 2}}},
                         {"parallelism", {{"pipeline", 2}, {"pipeline_schedule", "gpipe"}}},
                         {"training", {{"global_batch_size", 20}}}};
  EXPECT_EQ(execute(gpt_plan(pipeline), 1).micro_batches.most_in_flight, 5);
}

TEST(PipelineActivations, InFlightAreWhatThePeakIsMadeOf) {
  // One more micro-batch in flight costs its activations, to the byte.
  const auto first_stage_peak = [](int64_t stages) {
    const Json pipeline = {{"model", {{"num_layers", 2 * stages}}},
                           {"cluster", {{"gpus_per_node", stages}}},
                           {"parallelism", {{"pipeline", stages}}},
                           {"training", {{"global_batch_size", 32}}}};
    return execute(gpt_plan(pipeline), 0);
  };
  const auto two = first_stage_peak(2), three = first_stage_peak(3);
  EXPECT_EQ(three.peak.allocated_bytes - two.peak.allocated_bytes,
            two.micro_batches.activation_bytes);
}

}  // namespace
}  // namespace sim::activation_formulas
