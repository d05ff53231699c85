// What each framework's own buffers and kernels add, worked out by hand on a GPT of two layers:
// hidden 1024, 16 heads, vocabulary 1024, micro-batches of 4 x 512 tokens, 16-bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/sim/rank/executed_rank.h"

namespace sim::framework_memory {  // where the formulas' letters mean its sizes
namespace {

using estimator::Json;

constexpr int64_t s = 512, b = 4, h = 1024, heads = 16;
constexpr int64_t kFp16 = 2, kFp32 = 4, kMiB = 1024 * 1024;

int64_t workspace_at_peak(const estimator::RankProfile& profile) {
  return profile.peak.categories.value()[estimator::MemoryCategory::kWorkspace];
}

Json training(const Json& changes) { return {{"training", changes}}; }

int64_t held_between_iterations(const Json& changes) {
  return execute(gpt_plan(changes)).phases.back().after.allocated_bytes;
}

int64_t peak(const Json& changes) { return execute(gpt_plan(changes)).peak.allocated_bytes; }

TEST(MegatronFramework, OfTransformerEngineHasItsWorkspaceAndOfLocalLayersTheGlobalBuffer) {
  // TransformerEngine: 4 MiB on A100, and a dummy gradient for each shape of weight; the output
  // layer's, 1024 x h, is the projection's. Local layers: the input of the first attention product,
  // [b * heads, s, s], the causal mask, and the 1 MiB with which PyTorch's cuBLASLt adds biases.
  const int64_t workspace = 4 * kMiB;
  const int64_t stand_ins = kFp16 * (3 + 1 + 4 + 4) * h * h;
  const int64_t scores = kFp16 * b * heads * s * s;
  EXPECT_EQ(held_between_iterations(Json::object()) -
                held_between_iterations(training({{"transformer_impl", "local"}})),
            workspace + stand_ins - scores - s * s - kMiB);
}

/// In 8 bits, on a GPU of this kind.
Json eight_bits(const char* gpu, const char* recipe) {
  return {{"cluster", {{"gpu", gpu}}},
          {"training", {{"fp8_format", "hybrid"}, {"fp8_recipe", recipe}, {"attention", "fused"}}}};
}

Json sixteen_bits(const char* gpu) {
  return {{"cluster", {{"gpu", gpu}}}, {"training", {{"attention", "fused"}}}};
}

// Of each of the four weights of two layers, 12 h^2 a layer, a byte and one scale; on Hopper
// another byte for the transposed copy (Float8Quantizer in transformer_engine/pytorch/tensor).
// Scales that are delayed are those of delayed_scales_test.cpp, besides.
TEST(MegatronFramework, KeepsWeightsInEightBitsBesideThoseInSixteen) {
  constexpr int64_t kScales = 2 * 4 * 512, kDelayed = 2 * 5 * 4 * 512;
  for (const auto& [recipe, more] : {std::pair{"tensorwise", int64_t{0}}, {"delayed", kDelayed}}) {
    for (const auto& [gpu, copies] : {std::pair{"h100", 2}, {"b200", 1}}) {
      SCOPED_TRACE(gpu);
      EXPECT_EQ(held_between_iterations(eight_bits(gpu, recipe)) -
                    held_between_iterations(sixteen_bits(gpu)),
                2 * copies * 12 * h * h + kScales + more);
    }
  }
}

// A byte of each element twice, and a byte of every 32 elements twice (MXFP8Quantizer).
TEST(MegatronFramework, KeepsScalesOfBlocksBesideWeightsInEightBits) {
  EXPECT_EQ(held_between_iterations(eight_bits("b200", "mxfp8")) -
                held_between_iterations(sixteen_bits("b200")),
            2 * 2 * 12 * h * h * 33 / 32);
}

// A byte of each element twice, and fp32 for every 128 x 128 elements twice (Float8BlockQuantizer):
// 768, 256, 1,024 and 1,024 bytes of the four weights of a layer, in blocks of 512.
TEST(MegatronFramework, KeepsScalesOfSquaresBesideWeightsInEightBits) {
  constexpr int64_t kScales = 1024 + 512 + 1024 + 1024;
  EXPECT_EQ(held_between_iterations(eight_bits("h100", "blockwise")) -
                held_between_iterations(sixteen_bits("h100")),
            2 * 2 * (12 * h * h + kScales));
}

Json four_bits() {
  return {{"cluster", {{"gpu", "b200"}}},
          {"training", {{"dtype", "bf16"}, {"fp4_format", "e2m1"}, {"attention", "fused"}}}};
}

Json sixteen_as_four_bits() {
  Json sixteen = four_bits();
  sixteen["training"]["fp4_format"] = "none";
  return sixteen;
}

// Half a byte of each element twice, a byte of every 16 elements twice, and the largest element of
// each of the four weights of two layers twice (NVFP4Quantizer).
TEST(MegatronFramework, KeepsWeightsInFourBitsBesideThoseInSixteen) {
  constexpr int64_t kLargest = 2 * 2 * 4 * 512, kTransform = 512;
  EXPECT_EQ(held_between_iterations(four_bits()) - held_between_iterations(sixteen_as_four_bits()),
            2 * 2 * 12 * h * h * 9 / 16 + kLargest + kTransform);
}

// get_rht_matrix() of nvfp4_tensor.py: PyTorch multiplies there, too. The first of two stages has
// no other product of PyTorch, whose workspace is more than 8 MiB on Blackwell.
TEST(MegatronFramework, MakesTheTransformOfFourBitsInPyTorchsWorkspace) {
  const auto held = [](Json plan) {
    plan["cluster"]["gpus_per_node"] = 2;
    plan["parallelism"] = {{"pipeline", 2}};
    return execute(gpt_plan(plan), 0).phases.back().after.allocated_bytes;
  };
  const int64_t weights_of_layer = 2 * 12 * h * h * 9 / 16;
  EXPECT_GT(held(four_bits()) - held(sixteen_as_four_bits()), weights_of_layer + 8 * kMiB);
}

/// Bytes of a gather of a quantized sequence, and how many of the type there are in an iteration.
std::map<int64_t, int64_t> gathers_of(Json plan, const char* type = "Byte") {
  plan["parallelism"] = {{"tensor", 2}, {"sequence_parallel", true}};
  plan["cluster"]["gpus_per_node"] = 2;
  std::map<int64_t, int64_t> gathers;
  for (const auto& record : execute(gpt_plan(plan)).collectives) {
    const bool gathers_type =
        record.call.kind == estimator::CollectiveKind::kAllGather && record.call.dtype == type;
    if (gathers_type) gathers[record.call.bytes] += record.count;
  }
  return gathers;
}

// A layer gathers two inputs in forward and again in backward, and two gradients, which products
// sum along rows and along columns. With one scale for a tensor one of the two copies is made from
// the other.
TEST(MegatronFramework, GathersScalesOfBlocksWithThePartsOfASequence) {
  constexpr int64_t kWhole = s * b * h;
  const auto of_tensors = gathers_of(eight_bits("b200", "tensorwise"));
  const auto of_blocks = gathers_of(eight_bits("b200", "mxfp8"));
  const int64_t layers = of_tensors.at(kWhole) / (2 + 2 + 2);
  EXPECT_EQ(of_tensors, (std::map<int64_t, int64_t>{{kWhole, layers * 6}}));
  EXPECT_EQ(of_blocks,
            (std::map<int64_t, int64_t>{{kWhole, layers * 8}, {kWhole / 32, layers * 8}}));
  const Json of_128 = eight_bits("h100", "blockwise");
  EXPECT_EQ(gathers_of(of_128), (std::map<int64_t, int64_t>{{kWhole, layers * 8}}));
  EXPECT_EQ(gathers_of(of_128, "Float"),
            (std::map<int64_t, int64_t>{{kWhole * 4 / 128, layers * 8}}));
  EXPECT_EQ(gathers_of(four_bits()),
            (std::map<int64_t, int64_t>{{kWhole / 2, layers * 8}, {kWhole / 16, layers * 8}}));
}

// Of the inputs of its two layers after a norm, of which each rank has a part, it keeps the rows
// beside the columns: half a byte of an element and a byte of 16. MXFP8's columns have a byte and
// one of 32. The input of fc2, 4h wide, is divided among the ranks and kept by columns alone.
TEST(MegatronFramework, KeepsRowsInFourBitsBesideColumnsWhereInputsAreGathered) {
  const auto kept = [](Json changes) {
    changes["parallelism"] = {{"tensor", 2}, {"sequence_parallel", true}};
    changes["cluster"]["gpus_per_node"] = 2;
    const auto of_layers = [&](int64_t layers) {
      changes["model"] = {{"num_layers", layers}};
      return execute(gpt_plan(changes)).micro_batches.activation_bytes.value();
    };
    return of_layers(3) - of_layers(2);
  };
  constexpr int64_t kOfNorms = s * b * h, kOfActivation = 2 * s * b * h, kNumbers = 5 * 512;
  EXPECT_EQ(
      kept(eight_bits("b200", "mxfp8")) - kept(four_bits()),
      (kOfNorms + kOfActivation) * 33 / 32 - (2 * kOfNorms + kOfActivation) * 9 / 16 - kNumbers);
}

/// How often a plan calls a kernel in the micro-batches that are run.
int64_t calls_of(const Json& changes, const std::string& name) {
  int64_t count = 0;
  for (const auto& record : execute(gpt_plan(changes)).operators) {
    if (record.name == name) count += record.executed_count;
  }
  return count;
}

// Of each of 3 micro-batches two layers read what a norm wrote twice: its kernel finds the largest
// element, or of a known scale writes the rows, of which the columns are made.
TEST(MegatronFramework, LetsNormsWriteWhatProductsInEightBitsRead) {
  constexpr int64_t kNorms = 2 * 2 * 3;
  const Json found = eight_bits("h100", "tensorwise"), known = eight_bits("h100", "delayed");
  EXPECT_EQ(calls_of(found, "te::zero_amax") - calls_of(found, "te::amax"), kNorms);
  EXPECT_EQ(calls_of(found, "te::transpose"), 0);
  EXPECT_EQ(calls_of(known, "te::transpose"), kNorms);
}

// At the peak, in the backward of attention: cuDNN's takes output and gradient of several sequences
// where they lie, of which PyTorch's kernel, which stands for it, makes copies.
TEST(MegatronFramework, LetsFusedAttentionReadSequencesWhereTheyLie) {
  const auto temporary = [](int64_t sequences) {
    Json changes = sixteen_bits("h100");
    changes["model"] = {{"ffn_hidden_size", h / 4}};
    changes["training"].update({{"recompute", "full"}, {"micro_batch_size", sequences}});
    const auto peak = execute(gpt_plan(changes)).peak;
    EXPECT_EQ(peak.operator_name, "aten::_scaled_dot_product_flash_attention_backward");
    return peak.categories.value()[estimator::MemoryCategory::kTemporary];
  };
  EXPECT_EQ(temporary(4) - temporary(2), 2 * (temporary(2) - temporary(1)));
}

// Without rotary positions query, key and value are read where their product wrote them, [s, b,
// 3h]. With them query and key are copies, and the value alone keeps all of that
// (DotProductAttention .forward in megatron/core/transformer/dot_product_attention.py); with two
// heads to a group the value is repeated, and the product, [s, b, 2h], is freed, but query and key,
// too, are repeated or copied without rotary positions.
TEST(MegatronFramework, OfLocalLayersKeepsThePackedProductWhereHeadsHaveNoGroups) {
  const auto kept = [](int64_t groups, const char* positions) {
    const auto of_layers = [&](int64_t layers) {
      const Json changes = {
          {"model",
           {{"num_layers", layers},
            {"num_query_groups", groups},
            {"position_embedding", positions}}},
          {"training", {{"transformer_impl", "local"}, {"attention", "unfused"}}}};
      return execute(gpt_plan(changes)).micro_batches.activation_bytes.value();
    };
    return of_layers(3) - of_layers(2);
  };
  EXPECT_EQ(kept(heads, "rope") - kept(heads, "learned_absolute"), kFp16 * s * b * 2 * h);
  EXPECT_EQ(kept(heads / 2, "rope") - kept(heads / 2, "learned_absolute"), 0);
}

// What is gone is the weights in 16 bits: the copies in 8 bits are the parameters. With scales of
// blocks they are gathered in 16 bits, in the memory of the gradients.
TEST(MegatronFramework, KeepsWeightsInEightBitsAlone) {
  for (const auto& [gpu, recipe] :
       {std::pair{"h100", "tensorwise"}, {"h100", "delayed"}, {"b200", "mxfp8"}}) {
    SCOPED_TRACE(recipe);
    Json beside = eight_bits(gpu, recipe);
    beside["parallelism"] = {{"zero_stage", 1}};
    Json alone = beside;
    alone["training"]["fp8_param_gather"] = true;
    EXPECT_EQ(held_between_iterations(beside) - held_between_iterations(alone),
              2 * kFp16 * 12 * h * h);
  }
}

// The copies of rows in 4 bits come into the buffer that is gathered.
TEST(MegatronFramework, KeepsWeightsInFourBitsAlone) {
  Json beside = four_bits();
  beside["parallelism"] = {{"zero_stage", 1}};
  Json alone = beside;
  alone["training"]["fp4_param_gather"] = true;
  EXPECT_EQ(held_between_iterations(beside) - held_between_iterations(alone),
            2 * kFp16 * 12 * h * h);
}

/// Two stages of one layer; vocabulary 1024.
Json two_stages(const Json& training = Json::object(), int64_t virtual_stages = 1) {
  return {{"model", {{"num_layers", 2 * virtual_stages}, {"tie_embeddings", false}}},
          {"cluster", {{"gpu", "h100"}, {"gpus_per_node", 2}}},
          {"parallelism", {{"pipeline", 2}, {"virtual_stages", virtual_stages}}},
          {"training", training}};
}

// PyTorch's workspaces are the output layer's: 32 MiB for each of two threads on Hopper. All other
// products are TransformerEngine's, which has one of 32 MiB and 1 KiB (get_cublas_workspace in
// transformer_engine/pytorch/cpp_extensions/gemm.py).
TEST(MegatronFramework, HasPyTorchsWorkspacesWhereTheOutputLayerIs) {
  const auto workspace_bytes = [](int64_t stage) {
    const auto plan = gpt_plan(two_stages({{"attention", "fused"}}));
    return workspace_at_peak(execute(plan, stage));
  };
  EXPECT_EQ(workspace_bytes(0), 32 * kMiB + 1024);
  EXPECT_EQ(workspace_bytes(1), 32 * kMiB + 1024 + 2 * 32 * kMiB);
}

// Of each deferred micro-batch the last stage keeps the input of its output layer, [s, b, h], and
// the gradient of the logits, [s, b, vocabulary], until all backwards are done
// (embedding_activation_buffer and grad_output_buffer in megatron/core/models/gpt/gpt_model.py).
TEST(MegatronFramework, KeepsTheOperandsOfDeferredWeightGradients) {
  const auto peak_with = [](int64_t limit) {
    Json changes = two_stages({{"attention", "fused"}, {"global_batch_size", 4 * b}});
    changes["parallelism"]["defer_embedding_wgrad_compute"] = true;
    changes["parallelism"]["wgrad_deferral_limit"] = limit;
    return execute(gpt_plan(changes), 1).peak.allocated_bytes;
  };
  constexpr int64_t kVocabulary = 1024;
  // Of four micro-batches the last one, too, at its own peak.
  EXPECT_EQ(peak_with(4) - peak_with(3), kFp16 * s * b * (h + kVocabulary));
}

/// What a stage holds between iterations of each sequence of a micro-batch more.
int64_t held_of_a_sequence(int64_t stage, int64_t virtual_stages, const char* framework) {
  const auto held = [&](int64_t sequences) {
    const Json training = {{"attention", "fused"},
                           {"framework", framework},
                           {"micro_batch_size", sequences},
                           {"global_batch_size", 4 * sequences}};
    return execute(gpt_plan(two_stages(training, virtual_stages)), stage)
        .phases.back()
        .after.allocated_bytes;
  };
  return (held(4) - held(2)) / 2;
}

// TransformerBlock keeps its input until it is given another, with the gradient that was made for
// the stage before (set_input_tensor in megatron/core/transformer/transformer_block.py).
TEST(MegatronFramework, KeepsTheLastInputOfEachChunkAndItsGradient) {
  EXPECT_EQ(held_of_a_sequence(0, 1, "megatron-lm"), 0);
  EXPECT_EQ(held_of_a_sequence(1, 1, "megatron-lm"), 2 * kFp16 * s * h);
  EXPECT_EQ(held_of_a_sequence(0, 2, "megatron-lm"), 2 * kFp16 * s * h);
  EXPECT_EQ(held_of_a_sequence(1, 2, "megatron-lm"), 2 * 2 * kFp16 * s * h);
  EXPECT_EQ(held_of_a_sequence(1, 1, "plain"), 0);
}

// fused_vocab_parallel_cross_entropy in megatron/core/fusions/fused_cross_entropy.py: the largest
// logits, then the predicted ones and the sums of exponentials as one.
TEST(MegatronFramework, CompiledCrossEntropyReducesTwice) {
  const auto profile = execute(gpt_plan({{"cluster", {{"gpus_per_node", 2}}},
                                         {"parallelism", {{"tensor", 2}}},
                                         {"training", {{"cross_entropy_fusion", "native"}}}}));
  std::map<int64_t, int64_t> counts;  // of all-reduces of this many bytes
  for (const auto& record : profile.collectives) {
    if (record.call.kind == estimator::CollectiveKind::kAllReduce && record.call.dtype == "Float") {
      counts[record.call.bytes] += record.count;
    }
  }
  constexpr int64_t kMicroBatches = 4;
  EXPECT_EQ(counts[kFp32 * s * b], kMicroBatches);
  EXPECT_EQ(counts[2 * kFp32 * s * b], kMicroBatches);
}

// RotaryEmbedding.forward in megatron/core/models/common/embeddings/rotary_pos_embedding.py: each
// chunk is a GPTModel, whose cache holds the fp32 angles.
TEST(MegatronFramework, HasRotaryAnglesForEachChunk) {
  const auto workspace_bytes = [](const char* position_embedding, int64_t chunks) {
    Json changes = two_stages({{"attention", "fused"}}, chunks);
    changes["model"]["position_embedding"] = position_embedding;
    return workspace_at_peak(execute(gpt_plan(changes)));
  };
  for (const int64_t chunks : {1, 2}) {
    EXPECT_EQ(workspace_bytes("rope", chunks) - workspace_bytes("learned_absolute", chunks),
              chunks * kFp32 * s * (h / heads));
  }
}

// get_cached_cos_sin in megatron/core/models/common/embeddings/yarn_rotary_pos_embedding.py: cosine
// and sine in the model's type, and in the cache of forward() the fp32 angles.
TEST(MegatronFramework, HasRotaryTablesAndAnglesForEachLayerOfLatentAttention) {
  static constexpr int64_t kPositions = 64;
  const auto workspace_bytes = [](int64_t layers) {
    const auto plan = gpt_plan({{"model",
                                 {{"num_layers", layers},
                                  {"position_embedding", "rope"},
                                  {"multi_latent_attention", true},
                                  {"kv_lora_rank", 128},
                                  {"qk_head_dim", 128},
                                  {"qk_pos_emb_head_dim", kPositions},
                                  {"v_head_dim", 128}}},
                                {"training", {{"attention", "fused"}}}});
    return workspace_at_peak(execute(plan));
  };
  EXPECT_EQ(workspace_bytes(3) - workspace_bytes(2), (2 * kFp16 + kFp32) * s * kPositions);
}

TEST(MegatronFramework, HasNoStandInsWithoutGradientAccumulationFusion) {
  const auto profile = execute(gpt_plan(training({{"gradient_accumulation_fusion", false}})));
  EXPECT_EQ(profile.model_state->gradient_stand_in_bytes, 0);
}

// So large that the peak is in the loss, where a micro-batch's forward still has all that it
// carries.
constexpr int64_t kVocabulary = 131'072;

TEST(MegatronFramework, CarriesTheAttentionMaskWhereTheDataLoaderMakesIt) {
  const auto peak_with = [](bool mask) {
    return peak({{"model", {{"vocab_size", kVocabulary}}},
                 {"training", {{"attention_mask_in_dataloader", mask}}}});
  };
  EXPECT_EQ(peak_with(true) - peak_with(false), b * s * s);
}

// Attention and layers that run again keep it with all else that they are given; what else runs
// again is not given it (attention.py, transformer_block.py). Two micro-batches are in flight.
TEST(MegatronFramework, KeepsTheAttentionMaskForWhatIsGivenItAgain) {
  const auto added = [](const char* module) {
    const auto peak_with = [&](bool mask) {
      return peak({{"cluster", {{"gpus_per_node", 2}}},
                   {"model", {{"add_bias_linear", false}}},
                   {"parallelism", {{"pipeline", 2}}},
                   {"training",
                    {{"attention", "fused"},
                     {"attention_mask_in_dataloader", mask},
                     {"recompute", "selective"},
                     {"recompute_modules", {module}}}}});
    };
    return peak_with(true) - peak_with(false);
  };
  constexpr int64_t kMask = b * s * s;
  EXPECT_LE(added("mlp"), kMask);
  EXPECT_GE(added("core_attn"), 2 * kMask);
}

/// Allocated bytes at the peak of this iteration's forwards and backwards.
int64_t peak_of_iteration(int64_t number, const Json& changes) {
  const std::string name = "iteration_" + std::to_string(number) + ".forward_backward";
  for (const auto& phase : execute(gpt_plan(changes)).phases) {
    if (phase.name == name) return phase.peak.allocated_bytes;
  }
  ADD_FAILURE() << "no phase " << name;
  return 0;
}

/// How much higher the peak of an iteration of one micro-batch is with a compiled cross-entropy, if
/// nothing else is compiled.
int64_t added_by_compiled_cross_entropy(int64_t iteration, int64_t vocabulary, const char* gpu) {
  const auto peak_with = [&](const char* fusion) {
    return peak_of_iteration(iteration,
                             {{"cluster", {{"gpu", gpu}}},
                              {"model", {{"vocab_size", vocabulary}}},
                              {"training",
                               {{"cross_entropy_fusion", fusion},
                                {"bias_gelu_fusion", false},
                                {"bias_dropout_fusion", false},
                                {"global_batch_size", b}}}});
  };
  return peak_with("native") - peak_with("none");
}

TEST(MegatronFramework, CompiledCrossEntropyHasASecondFp32Buffer) {
  constexpr int64_t kLogitsFp32 = s * b * kVocabulary * kFp32;
  EXPECT_NEAR(static_cast<double>(added_by_compiled_cross_entropy(1, kVocabulary, "a100")),
              kLogitsFp32,
              0.001 * kLogitsFp32);
  const auto peak_with = [](const char* fusion) {
    return peak({{"model", {{"vocab_size", kVocabulary}}},
                 {"training", {{"cross_entropy_fusion", fusion}}}});
  };
  EXPECT_LT(peak_with("te"), peak_with("none") - kLogitsFp32 / 2);
}

// The logits in fp32 are 1 GiB. In forward the kernel beside the second buffer has one
// configuration, since its rows are longer than 32,768 elements (add_persistent_rblock in
// torch/_inductor/codegen/triton.py). In backward the last kernel is tuned beside two buffers and
// the gradient in 16 bits, which is as large as the logits were. It changes the softmax, of which
// no copy fits below the peak. The L2 cache of an A100 has 40 MiB.
TEST(MegatronFramework, TunesItsCompiledCrossEntropyInTheFirstIteration) {
  constexpr int64_t kLogitsFp32 = s * b * kVocabulary * kFp32, kL2 = 40 * kMiB;
  EXPECT_NEAR(static_cast<double>(added_by_compiled_cross_entropy(0, kVocabulary, "a100")),
              kLogitsFp32 + kL2,
              0.1 * kL2);
}

// The logits in fp32 are 64 MiB, the L2 cache of a B200 126 MiB. After the first kernel the peak is
// 126 MiB above the logits. Those of the exponentials are changed in place as two arguments, beside
// the second buffer. Of its three configurations the first has 126 - 64 MiB below the peak, and no
// copy; the second 126 MiB, and one copy; the third 126 + 64 MiB, and two copies.
TEST(MegatronFramework, CopiesWhatACompiledKernelChangesAsFarAsThePeakAllows) {
  constexpr int64_t kSmallVocabulary = 8192;
  constexpr int64_t kLogitsFp32 = s * b * kSmallVocabulary * kFp32, kL2 = 126 * kMiB;
  EXPECT_NEAR(static_cast<double>(added_by_compiled_cross_entropy(0, kSmallVocabulary, "b200")),
              3 * kLogitsFp32 + kL2,
              0.1 * kL2);
}

// The layers of this model need less than the L2 cache of an A100, 40 MiB, for a micro-batch.
TEST(MegatronFramework, TunesTheCompiledFunctionsOfItsLayers) {
  const auto above_state = [](int64_t iteration, const Json& fusions) {
    Json changes = {{"model", {{"hidden_size", 128}, {"num_attention_heads", 2}}},
                    {"training", {{"micro_batch_size", 1}}}};
    changes.merge_patch(fusions);
    const auto profile = execute(gpt_plan(changes));
    const std::string name = "iteration_" + std::to_string(iteration) + ".forward_backward";
    for (const auto& phase : profile.phases) {
      if (phase.name == name) return phase.peak.allocated_bytes - phase.before.allocated_bytes;
    }
    return int64_t{0};
  };
  constexpr int64_t kL2 = 40 * kMiB;
  const Json none = training({{"bias_gelu_fusion", false}, {"bias_dropout_fusion", false}});
  EXPECT_LT(above_state(0, none), kL2);
  EXPECT_GE(above_state(0, training({{"bias_gelu_fusion", false}})), kL2);
  EXPECT_GE(above_state(0, training({{"bias_dropout_fusion", false}})), kL2);
  EXPECT_LT(above_state(1, Json::object()), kL2);
}

TEST(NanotronFramework, KeepsTheGatheredInputOfColumnParallelLayers) {
  // qkv and the MLP's first layer keep [s, b, h] where Megatron-LM keeps a part of it.
  static constexpr int64_t t = 4;
  const auto layer_bytes = [](const char* framework) {
    const auto with_layers = [&](int64_t layers) {
      return execute(gpt_plan({{"model", {{"num_layers", layers}}},
                               {"cluster", {{"gpus_per_node", t}}},
                               {"parallelism", {{"tensor", t}, {"sequence_parallel", true}}},
                               {"training", {{"framework", framework}}}}))
          .micro_batches.activation_bytes.value();
    };
    return with_layers(3) - with_layers(2);
  };
  EXPECT_EQ(layer_bytes("nanotron") - layer_bytes("megatron-lm"),
            2 * kFp16 * s * b * h * (t - 1) / t);
}

TEST(TorchtitanFramework, HasOneTypeForAllStateWithoutFsdp) {
  const auto profile =
      execute(gpt_plan(training({{"framework", "torchtitan"}, {"dtype", "bf16"}})));
  const int64_t parameters = profile.parameters.count;
  EXPECT_EQ(profile.model_state->parameter_bytes, 2 * parameters);
  EXPECT_EQ(profile.model_state->gradient_bytes, 2 * parameters);
  EXPECT_EQ(profile.model_state->master_weight_bytes, 0);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 4 * parameters);
}

/// What one more layer of a Llama adds to the activations of a micro-batch: 4 key/value heads, an
/// MLP of 2816.
constexpr int64_t kGroups = 4, kFfn = 2816;
int64_t titan_bytes(int64_t layers, const Json& training, int64_t width = h / heads) {
  Json changes = Json::parse(R"({
    "model": {"ffn_hidden_size": 2816, "num_query_groups": 4, "normalization": "RMSNorm",
              "activation": "swiglu", "position_embedding": "rope", "add_bias_linear": false,
              "tie_embeddings": false, "hidden_dropout": 0, "attention_dropout": 0},
    "training": {"framework": "torchtitan", "dtype": "bf16", "attention": "flash"}})");
  changes["model"]["num_layers"] = layers;
  changes["model"]["kv_channels"] = width;
  changes["training"].merge_patch(training);
  return execute(gpt_plan(changes)).micro_batches.activation_bytes.value();
}
int64_t titan_layer_bytes(const Json& training, int64_t width = h / heads) {
  return titan_bytes(3, training, width) - titan_bytes(2, training, width);
}

// The input; of the seven products, each with the width of its output, query, value, gate and down;
// attention's output, its log-sum for each row and head, and two blocks for its random numbers.
// That the last product is kept saves nothing, but TorchTitan's rule does not know.
TEST(TorchtitanFramework, KeepsEverySecondProductAndAttentionUnderSelectiveRecompute) {
  const int64_t width = h / heads;
  const int64_t columns = h + (h + kGroups * width + kFfn + h) + h;
  EXPECT_EQ(titan_layer_bytes({{"recompute", "selective"}}),
            2 * s * b * columns + kFp32 * heads * s * b + 2 * 512);
}

// PyTorch pads the heads to a multiple of 8 for its flash kernel, and keeps what the kernel gave.
TEST(TorchtitanFramework, KeepsThePaddedOutputOfAttentionUnderSelectiveRecompute) {
  const int64_t width = 60, padded = 64;
  const int64_t columns = h + (heads * width + kGroups * width + kFfn + h) + heads * padded;
  EXPECT_EQ(titan_layer_bytes({{"recompute", "selective"}}, width),
            2 * s * b * columns + kFp32 * heads * s * b + 2 * 512);
}

// Of two layers more the second is the input alone.
TEST(TorchtitanFramework, KeepsOneInputOfTwoLayersUnderSelectiveRecomputeOfEverySecond) {
  const Json every_second = {{"recompute", "selective"}, {"selective_ac_option", "2"}};
  EXPECT_EQ(titan_bytes(4, every_second) - titan_bytes(2, every_second),
            titan_layer_bytes({{"recompute", "none"}}) + 2 * s * b * h);
}

// In the recomputation of a layer whose checkpoint lies inside of its unit, the unit of the experts
// begins and ends a forward of its own (_post_forward in torch/distributed/fsdp/_fully_shard/
// _fsdp_state.py), and what was gathered for it is freed.
TEST(TorchtitanFramework, FreesGatheredExpertsThatAreRecomputed) {
  const auto held = [](const char* recompute) {
    return held_between_iterations(Json::parse(fmt::format(R"({{
      "model": {{"normalization": "RMSNorm", "activation": "swiglu", "position_embedding": "rope",
                "add_bias_linear": false, "hidden_dropout": 0, "attention_dropout": 0,
                "num_experts": 8, "moe_ffn_hidden_size": 1024}},
      "cluster": {{"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8}},
      "parallelism": {{"zero_stage": 3, "expert": 2}},
      "training": {{"framework": "torchtitan", "dtype": "bf16", "global_batch_size": 32,
                   "recompute": "{}"}}}})",
                                                           recompute)));
  };
  EXPECT_EQ(held("full"), held("none"));
}

/// One of the middle stages of a Llama under FSDP2, in four stages of TorchTitan.
estimator::RankProfile titan_stage(int64_t micro_batches, const Json& changes = Json::object()) {
  Json all = Json::parse(R"({
    "model": {"num_layers": 10, "ffn_hidden_size": 2816, "num_query_groups": 4,
              "normalization": "RMSNorm", "activation": "swiglu", "position_embedding": "rope",
              "add_bias_linear": false, "tie_embeddings": false, "hidden_dropout": 0,
              "attention_dropout": 0},
    "cluster": {"nodes": 1, "gpus_per_node": 8},
    "parallelism": {"pipeline": 4, "zero_stage": 2},
    "training": {"framework": "torchtitan", "dtype": "bf16", "attention": "flash"}})");
  all["training"]["global_batch_size"] = 2 * b * micro_batches;
  all.merge_patch(changes);
  return execute(gpt_plan(all), /*rank=*/2);
}

// Seven matrices and two norms in each of three layers, whose parts two ranks have.
TEST(TorchtitanFramework, SumsTheNormOfEachParametersGradient) {
  int64_t sums = 0;
  for (const estimator::CollectiveRecord& record : titan_stage(8).collectives) {
    if (record.call.kind != estimator::CollectiveKind::kAllReduce) continue;
    EXPECT_EQ(record.call.bytes, kFp32 * 3 * 9);
    EXPECT_EQ(record.call.group_size, 2);
    sums += record.count;
  }
  EXPECT_EQ(sums, 1);
}

// A layer's input, and the cosines and sines that FSDP2 casts for it (cast_forward_inputs).
TEST(TorchtitanFramework, KeepsCastTablesOfQwen3ForEachLayer) {
  const auto kept = [](int64_t layers) {
    return titan_stage(2,
                       {{"model", {{"num_layers", layers}, {"qk_layernorm", true}}},
                        {"cluster", {{"gpus_per_node", 4}}},
                        {"parallelism", {{"pipeline", 1}, {"zero_stage", 3}}},
                        {"training", {{"recompute", "full"}, {"global_batch_size", 4 * b}}}})
        .micro_batches.activation_bytes.value();
  };
  EXPECT_EQ(kept(3) - kept(2), kFp16 * s * b * h + kFp16 * s * 2 * (h / heads));
}

// Two buffers of the hidden states' shape, and the tokens and the labels, although they are not
// read here.
TEST(TorchtitanFramework, KeepsTwoBuffersForEachMicroBatchOfAStage) {
  const auto held = [](int64_t micro_batches) {
    return titan_stage(micro_batches).phases.back().after.allocated_bytes;
  };
  constexpr int64_t kInt64 = 8;
  EXPECT_EQ(held(8) - held(6), 2 * (2 * kFp16 * s * b * h + 2 * kInt64 * s * b));
}

// Parameters are not freed between the micro-batches, and the sums of their gradients are whole and
// in fp32; a rank counts its own half of them. At the peak, in a backward, nothing is reduced yet.
TEST(TorchtitanFramework, SumsWholeGradientsOfAStageInFp32) {
  const estimator::RankProfile profile = titan_stage(8);
  EXPECT_EQ(profile.peak.direction, estimator::Direction::kBackward);
  EXPECT_EQ(profile.peak.categories.value()[estimator::MemoryCategory::kGradient],
            kFp32 * 2 * profile.parameters.count);
}

// Of the 16 micro-batches of a step not all are executed. The stage has three layers.
TEST(TorchtitanFramework, GathersAndReducesTheUnitsOfAStageOnceInAStep) {
  int64_t gathers = 0, reductions = 0;
  for (const estimator::CollectiveRecord& record : titan_stage(16).collectives) {
    if (record.call.kind == estimator::CollectiveKind::kAllGather) gathers += record.count;
    if (record.call.kind == estimator::CollectiveKind::kReduceScatter) reductions += record.count;
  }
  EXPECT_EQ(gathers, 3);
  EXPECT_EQ(reductions, 3);
}

/// The same Llama under transformers' Trainer on one of 8 data ranks.
estimator::RankProfile trainer_profile(int64_t layers,
                                       const Json& training,
                                       int64_t zero_stage = 0) {
  Json changes = Json::parse(R"({
    "model": {"ffn_hidden_size": 2816, "num_query_groups": 4, "normalization": "RMSNorm",
              "activation": "swiglu", "position_embedding": "rope", "add_bias_linear": false,
              "tie_embeddings": false, "hidden_dropout": 0, "attention_dropout": 0},
    "cluster": {"gpu": "a100-sxm-80", "nodes": 1, "gpus_per_node": 8},
    "training": {"framework": "transformers", "dtype": "bf16", "attention": "flash",
                 "global_batch_size": 32}})");
  changes["model"]["num_layers"] = layers;
  changes["parallelism"]["zero_stage"] = zero_stage;
  changes["training"].merge_patch(training);
  return execute(gpt_plan(changes));
}
int64_t trainer_layer_bytes(const Json& training) {
  const auto bytes = [&](int64_t layers) {
    return trainer_profile(layers, training).micro_batches.activation_bytes.value();
  };
  return bytes(3) - bytes(2);
}

TEST(TransformersFramework, HasFp32StateUnderAutocastAndElseThatOfTheModel) {
  for (const bool mixed : {true, false}) {
    const auto profile = trainer_profile(2, {{"mixed_precision", mixed}});
    const int64_t width = mixed ? 4 : 2, parameters = profile.parameters.count;
    EXPECT_EQ(profile.model_state->parameter_bytes, width * parameters);
    EXPECT_EQ(profile.model_state->gradient_bytes, width * parameters);
    EXPECT_EQ(profile.model_state->master_weight_bytes, 0);
    EXPECT_EQ(profile.model_state->optimizer_state_bytes, 2 * width * parameters);
  }
}

/// Of one layer, for each token: query, key, value and the output of attention; gate, its SiLU, up
/// and their product.
constexpr int64_t kKeyValue = 2 * kGroups * (h / heads);
constexpr int64_t kIn16Bits = h + kKeyValue + h + 4 * kFfn;
/// The log-sum of attention for each row and head, and two blocks for its random numbers; and of
/// each of two norms the reciprocal of its deviation.
constexpr int64_t kBeside = kFp32 * heads * s * b + 2 * 512 + 2 * kFp32 * s * b;

// In fp32 what each of two norms reads and what it makes of that; in 16 bits a copy of what a norm
// gives for each of the five products that read it, and the matrices.
TEST(TransformersFramework, KeepsCopiesIn16BitsForEachProductUnderAutocast) {
  const int64_t matrices = 2 * h * h + h * kKeyValue + 3 * h * kFfn;
  EXPECT_EQ(trainer_layer_bytes(Json::object()),
            s * b * (2 * 2 * kFp32 * h + 2 * (5 * h + kIn16Bits)) + 2 * matrices + kBeside);
}

// In fp32 what each of two norms reads; in 16 bits what it makes before and after its weight.
TEST(TransformersFramework, KeepsInputsOfNormsInFp32WhereTheModelIsIn16Bits) {
  EXPECT_EQ(trainer_layer_bytes({{"mixed_precision", false}}),
            s * b * (2 * kFp32 * h + 2 * (2 * 2 * h + kIn16Bits)) + kBeside);
}

TEST(TransformersFramework, KeepsTheInputOfARecomputedLayer) {
  EXPECT_EQ(trainer_layer_bytes({{"mixed_precision", false}, {"recompute", "full"}}),
            2 * s * b * h);
}

/// With adapters of rank 16 beside all linear layers, in fp32; the weights are in 16 bits.
TEST(TransformersFramework, HasGradientsAndMomentsOfAdaptersAlone) {
  for (const int64_t zero_stage : {0, 3}) {
    const Json training = {{"lora_rank", 16}, {"lora_target_modules", {"all-linear"}}};
    const auto profile = trainer_profile(2, training, zero_stage);
    const int64_t shards = zero_stage == 0 ? 1 : 8;
    const int64_t widths = 2 * (h + h) + 2 * (h + kGroups * (h / heads)) + 3 * (h + kFfn);
    const int64_t adapters = 2 * 16 * widths / shards;
    EXPECT_EQ(profile.model_state->gradient_bytes, kFp32 * adapters);
    EXPECT_EQ(profile.model_state->optimizer_state_bytes, 2 * kFp32 * adapters);
    // FSDP2's parts are all in fp32.
    const int64_t frozen = profile.parameters.count - adapters;
    EXPECT_EQ(profile.model_state->parameter_bytes,
              kFp32 * adapters + (zero_stage == 0 ? kFp16 : kFp32) * frozen);
  }
}

// Whether the mask has only ones, and whether the loss is NaN or infinite.
TEST(TransformersFramework, ReadsThreeValuesInEachMicroBatch) {
  const auto profile = trainer_profile(2, Json::object());
  int64_t reads = 0;
  for (const auto& record : profile.operators) {
    if (record.name == "aten::_local_scalar_dense") reads += record.count;
  }
  EXPECT_EQ(reads, 3 * profile.micro_batches.total);
}

// fp16: the parameters' own are the sum; bf16: flat fp32 ones, and the parameters' own beside them.
TEST(MegatronDeepspeedFramework, SumsGradientsInFp16OrKeepsThemBesideFp32) {
  const auto gradient_bytes = [](const char* dtype) {
    const auto profile =
        execute(gpt_plan(training({{"framework", "megatron-deepspeed"}, {"dtype", dtype}})));
    return profile.model_state->gradient_bytes / profile.parameters.count;
  };
  EXPECT_EQ(gradient_bytes("fp16"), 2);
  EXPECT_EQ(gradient_bytes("bf16"), 2 + 4);
}

// Weights, fp32 weights and two moments; and the fp32 gradients of BF16Optimizer, flat from the
// start.
TEST(MegatronDeepspeedFramework, HasItsStateBeforeTheFirstStep) {
  const auto bytes_after_build = [](const char* dtype) {
    const auto profile =
        execute(gpt_plan({{"parallelism", {{"zero_stage", 1}}},
                          {"training", {{"framework", "megatron-deepspeed"}, {"dtype", dtype}}}}));
    EXPECT_EQ(profile.phases[1].name, "build_optimizer");
    return static_cast<double>(profile.phases[1].after.allocated_bytes) /
           static_cast<double>(profile.parameters.count);
  };
  EXPECT_NEAR(bytes_after_build("fp16"), 2 + 12, 0.1);
  EXPECT_NEAR(bytes_after_build("bf16"), 2 + 4 + 12, 0.1);
}

Json zero(int64_t stage, int64_t bucket_elements) {
  return {{"model",
           {{"add_bias_linear", false}, {"position_embedding", "rope"}, {"attention_dropout", 0}}},
          {"cluster", {{"gpus_per_node", 4}}},
          {"parallelism", {{"zero_stage", stage}, {"reduce_bucket_size", bucket_elements}}},
          {"training", {{"framework", "deepspeed"}}}};
}

// Stage 2 makes its bucket in each backward and two of them where they overlap; stage 3 has one all
// the time.
TEST(DeepspeedFramework, HasItsBucketsInTheBackwardOrAllTheTime) {
  constexpr int64_t kBucket = 64 * kMiB;
  EXPECT_EQ(held_between_iterations(zero(2, 2 * kBucket)),
            held_between_iterations(zero(2, kBucket)));
  EXPECT_EQ(
      held_between_iterations(zero(3, 2 * kBucket)) - held_between_iterations(zero(3, kBucket)),
      kFp16 * kBucket);
  EXPECT_EQ(peak(zero(2, 3 * kBucket)) - peak(zero(2, 2 * kBucket)), kFp16 * kBucket);
  Json overlapped = zero(2, 2 * kBucket);
  overlapped["parallelism"]["overlap_comm"] = true;
  EXPECT_EQ(peak(overlapped) - peak(zero(2, 2 * kBucket)), kFp16 * 2 * kBucket);
}

// transformers 4.57.3 with DeepSpeed 0.18.3 under onerank exec: a Llama of 4 layers, hidden 512,
// MLP 1,408, 8 heads, vocabulary 32,000, on 8 ranks with two micro-batches; stage 3 made under
// zero.Init with reduce_bucket_size 1e6, prefetch 9e5, persistence 5,120 and DeepSpeed's other
// defaults. The nine norms of a group of their own have a norm of gradients and a gather more.
TEST(DeepspeedFramework, CallsTheCollectivesOfTheRealEngine) {
  const auto calls = [](int64_t stage, bool decay_groups = false) {
    const auto profile =
        execute(gpt_plan({{"model",
                           {{"num_layers", 4},
                            {"hidden_size", 512},
                            {"ffn_hidden_size", 1408},
                            {"num_attention_heads", 8},
                            {"vocab_size", 32000},
                            {"max_position_embeddings", 1024},
                            {"normalization", "RMSNorm"},
                            {"activation", "swiglu"},
                            {"position_embedding", "rope"},
                            {"tie_embeddings", false},
                            {"add_bias_linear", false},
                            {"hidden_dropout", 0},
                            {"attention_dropout", 0}}},
                          {"cluster", {{"gpus_per_node", 8}}},
                          {"parallelism",
                           {{"zero_stage", stage},
                            {"reduce_bucket_size", stage == 3 ? 1'000'000 : 500'000'000},
                            {"stage3_prefetch_bucket_size", 900'000},
                            {"stage3_param_persistence_threshold", 5120}}},
                          {"training",
                           {{"framework", "deepspeed"},
                            {"decay_groups", decay_groups},
                            {"dtype", "bf16"},
                            {"attention", "flash"},
                            {"micro_batch_size", 2},
                            {"global_batch_size", 32},
                            {"sequence_length", 1024}}}}));
    std::map<estimator::CollectiveKind, std::pair<int64_t, int64_t>> counted;
    for (const auto& record : profile.collectives) {
      auto& [count, bytes] = counted[record.call.kind];
      count += record.count;
      bytes += record.count * record.call.bytes;
    }
    return counted;
  };
  using enum estimator::CollectiveKind;
  using Calls = decltype(calls(2));
  EXPECT_EQ(calls(2), (Calls{{kAllReduce, {3, 182'470'660}}, {kAllGather, {1, 91'235'328}}}));
  EXPECT_EQ(calls(2, /*decay_groups=*/true),
            (Calls{{kAllReduce, {4, 182'470'664}}, {kAllGather, {2, 91'235'328}}}));
  EXPECT_EQ(calls(3),
            (Calls{{kAllReduce, {1, 8}},
                   {kAllGather, {32, 149'693'440}},
                   {kReduceScatter, {36, 182'470'656}}}));
}

TEST(NanotronFramework, KeepsTheQueryInsideACopyOfQueryKeyAndValue) {
  // The copy of all three (3 s b h), key and value again (2 s b h); Megatron-LM keeps one of each.
  const auto layer_bytes = [](const char* framework) {
    const auto with_layers = [&](int64_t layers) {
      return execute(gpt_plan({{"model",
                                {{"num_layers", layers},
                                 {"position_embedding", "rope"},
                                 {"attention_dropout", 0}}},
                               {"training", {{"framework", framework}, {"attention", "flash"}}}}))
          .micro_batches.activation_bytes.value();
    };
    return with_layers(3) - with_layers(2);
  };
  EXPECT_EQ(layer_bytes("nanotron") - layer_bytes("megatron-lm"), 2 * kFp16 * s * b * h);
}

}  // namespace
}  // namespace sim::framework_memory
