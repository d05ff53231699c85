// What Megatron-Bridge's adapters (LoRA) need beside weights that do not change:
// ParallelLinearAdapter in megatron/bridge/peft/utils.py, LinearWithFrozenWeight in
// megatron/core/tensor_parallel/layers.py, _LayerNormLinear in
// transformer_engine/pytorch/module/layernorm_linear.py. The layers are those of
// activation_memory_test.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "tests/sim/rank/executed_rank.h"

namespace sim::adapter_formulas {  // where the formulas' letters mean its sizes
namespace {

using estimator::Json;
using estimator::RankProfile;

constexpr double s = 512, b = 4, h = 1024, a = 16, t = 4, r = 64;
constexpr double kLayerNormRows = 16 * s * b;

RankProfile adapted(int64_t layers, Json changes, const Json& modules) {
  changes["model"]["num_layers"] = layers;
  changes["training"]["framework"] = "megatron-lm";
  changes["training"]["lora_rank"] = r;
  changes["training"]["lora_target_modules"] = modules;
  return execute(gpt_plan(changes));
}

/// What one more layer adds to the activations of a micro-batch.
double layer_bytes(const Json& changes, const Json& modules = Json::array()) {
  const auto with_layers = [&](int64_t layers) {
    return adapted(layers, changes, modules).micro_batches.activation_bytes.value();
  };
  return static_cast<double>(with_layers(3) - with_layers(2));
}

Json four_tensor_ranks(bool sequence_parallel) {
  return {{"cluster", {{"gpus_per_node", 4}}},
          {"parallelism", {{"tensor", 4}, {"sequence_parallel", sequence_parallel}}}};
}

// All inputs are those of adapters, too, and each adapter keeps what is between its matrices.
TEST(MegatronAdapters, KeepWhatATrainedLayerKeepsAndTheirOwnLowRank) {
  EXPECT_EQ(layer_bytes({}), s * b * h * (34 + 5 * a * s / h) + kLayerNormRows + 4 * 2 * s * b * r);
}

// The output of attention (2), the second norm's (2) and the activation's (8) are not kept.
TEST(MegatronAdapters, LeaveInputsOfOtherLayersUnkept) {
  EXPECT_EQ(layer_bytes({}, {"linear_qkv"}),
            s * b * h * (34 - 12 + 5 * a * s / h) + kLayerNormRows + 2 * s * b * r);
}

TEST(MegatronAdapters, HaveAllColumnsBetweenTheirMatricesOnEachTensorRank) {
  EXPECT_EQ(layer_bytes(four_tensor_ranks(false)),
            s * b * h * (10 + 24 / t + 5 * a * s / (h * t)) + kLayerNormRows + 4 * 2 * s * b * r);
}

// Beside column parallel layers they keep the whole sequence, and TransformerEngine this rank's
// part.
TEST(MegatronAdapters, KeepTheGatheredSequenceUnderSequenceParallelism) {
  EXPECT_EQ(layer_bytes(four_tensor_ranks(true)),
            s * b * h / t * (34 + 5 * a * s / h) + kLayerNormRows / t + 2 * 2 * s * b * h +
                4 * 2 * s * b * r);
}

// A checkpoint needs an input with a gradient, also in the first layer.
TEST(MegatronAdapters, KeepTheInputOfARecomputedLayer) {
  EXPECT_EQ(layer_bytes({{"training", {{"recompute", "full"}}}}), 2 * s * b * h);
  const RankProfile profile = adapted(2, {{"training", {{"recompute", "full"}}}}, Json::array());
  EXPECT_GT(profile.model_state->gradient_bytes, 0);
}

// Two matrices beside each of four layers: h + 3 h, h + h, h + 4 h and 4 h + h.
TEST(MegatronAdapters, AreIn16BitsWithGradientsAndStateInFp32) {
  for (const int64_t ranks : {1, 4}) {
    const Json changes = ranks == 1 ? Json::object() : four_tensor_ranks(true);
    const auto state = *adapted(2, changes, Json::array()).model_state;
    const auto adapters = static_cast<int64_t>(2 * r * (4 * h + 2 * h + 5 * h + 5 * h)) / ranks;
    EXPECT_EQ(state.gradient_bytes, 4 * adapters);
    EXPECT_EQ(state.master_weight_bytes, 4 * adapters);
    EXPECT_EQ(state.optimizer_state_bytes, 2 * 4 * adapters);
    Json trained = changes;
    trained["model"]["num_layers"] = 2;
    const auto frozen = execute(gpt_plan(trained)).model_state->parameter_bytes;
    EXPECT_EQ(state.parameter_bytes - frozen, 2 * adapters);
  }
}

// x = x * (alpha / dim) in ParallelLinearAdapter.forward: nothing is left of the second matrix's
// product when the sum is made. Beside this sum there are the layer's product and the scaled one.
TEST(MegatronAdapters, FreeTheirProductBeforeItIsAdded) {
  const auto above_attention = [](double width) {
    const Json changes = {{"model", {{"ffn_hidden_size", width}}}};
    std::map<std::string, int64_t> peaks;
    for (const auto& module : adapted(1, changes, {"linear_fc1"}).modules) {
      peaks[module.path] = module.forward_peak_bytes;
    }
    return static_cast<double>(peaks.at("layers.0.mlp.linear_fc1") -
                               peaks.at("layers.0.self_attention.linear_qkv"));
  };
  EXPECT_EQ(above_attention(8 * h) - above_attention(4 * h), 3 * 2 * s * b * 4 * h);
}

/// Calls of the tensor ranks in a forward of one more layer, of at least one rank's columns.
int64_t calls_of(const Json& training, estimator::CollectiveKind kind) {
  const auto count = [&](int64_t layers) {
    Json changes = four_tensor_ranks(true);
    changes["training"] = training;
    const RankProfile profile = adapted(layers, changes, {"linear_proj"});
    int64_t found = 0;
    for (const auto& record : profile.collectives) {
      const bool is_large = static_cast<double>(record.call.bytes) >= 2 * s * b * h / t;
      const bool is_forward = record.direction == estimator::Direction::kForward;
      if (is_large && is_forward && record.call.kind == kind) found += record.count;
    }
    return found / profile.micro_batches.total;
  };
  return count(3) - count(2);
}

// For query, key and value and for the MLP's first product; all columns of the projection's adapter
// are the third.
TEST(MegatronAdapters, MayExchangeTheirColumnsForTheirPartOfTheSequence) {
  using enum estimator::CollectiveKind;
  const Json exchanging = {{"lora_a2a_experimental", true}};
  EXPECT_EQ(calls_of(Json::object(), kAllGather), 3);
  EXPECT_EQ(calls_of(Json::object(), kAllToAll), 0);
  EXPECT_EQ(calls_of(exchanging, kAllGather), 2);
  EXPECT_EQ(calls_of(exchanging, kAllToAll), 1);
}

/// Of one more layer.
int64_t products_of(const std::function<RankProfile(int64_t layers)>& run) {
  const auto count = [&](int64_t layers) {
    int64_t found = 0;
    for (const auto& record : run(layers).operators) {
      const bool multiplies = record.name == "aten::mm" || record.name == "aten::addmm" ||
                              record.name == "aten::addmm_";
      if (multiplies) found += record.count;
    }
    return found;
  };
  return count(3) - count(2);
}

// Four layers have three products each; two where the weight is frozen, and those of the two
// matrices of an adapter three.
TEST(MegatronAdapters, HaveNoProductsForGradientsOfFrozenWeights) {
  const int64_t trained = products_of([](int64_t layers) {
    return execute(gpt_plan({{"model", {{"num_layers", layers}}}}));
  });
  const auto with_adapters = [](const Json& modules) {
    return products_of([&](int64_t layers) { return adapted(layers, Json::object(), modules); });
  };
  EXPECT_EQ(with_adapters({"linear_qkv"}) * (4 * 3), trained * (4 * 2 + 2 * 3));
  EXPECT_EQ(with_adapters(Json::array()) * (4 * 3), trained * (4 * 2 + 4 * 2 * 3));
}

}  // namespace
}  // namespace sim::adapter_formulas
