// Real ranks of every layout do what the stub says and compute what the whole model computes.
#include <algorithm>

#include "estimator/base/fields.h"
#include "tests/sim/verify/ranks/verify_program.h"

namespace sim {
namespace {

using estimator::Json;

struct Layout {
  const char* name;
  int64_t ranks;
  const char* changes;  ///< to the GPT of write_plan(), as JSON
  bool llama = false;
  const char* model = "{}";  ///< more of them
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) { return out << layout.name; }

class VerifiedLayout : public VerifyProgram, public testing::WithParamInterface<Layout> {};

/// Enough samples that gradients are added up, and that a pipeline is filled, runs full and is
/// emptied. Each further micro-batch repeats the same calls, which are nearly all that a test
/// takes.
int64_t samples_for(const Json& changes) {
  const Json parallelism = changes.value("parallelism", Json::object());
  const int64_t stages = parallelism.value("pipeline", 1);
  const int64_t data_ranks = parallelism.value("data", 1);
  return std::min<int64_t>(8, data_ranks * (stages > 1 ? 2 * stages : 2));
}

TEST_P(VerifiedLayout, IsWhatTheStubSaysAndWhatTheWholeModelComputes) {
  const Layout& layout = GetParam();
  Json changes = layout.llama ? llama_changes() : Json::object();
  changes.merge_patch(Json::parse(layout.model));
  changes["training"]["global_batch_size"] = samples_for(Json::parse(layout.changes));
  changes.merge_patch(Json::parse(layout.changes));
  const Verification verification = verify(write_plan(layout.ranks, changes), 0);
  EXPECT_TRUE(verification.equal);
  ASSERT_EQ(verification.ranks.size(), static_cast<std::size_t>(layout.ranks));
  // Against a comparison of nothing with nothing.
  ASSERT_EQ(verification.losses.size(), 2u);
  for (const double loss : verification.losses) EXPECT_GT(loss, 1.0);  // log(64) = 4.2
  EXPECT_NE(verification.losses[0], verification.losses[1]);
  for (const RankVerification& rank : verification.ranks) {
    EXPECT_GT(rank.collectives, 0);
    EXPECT_GT(rank.peak_allocated_bytes, 0);
    EXPECT_GT(rank.tensors, 0);
    EXPECT_EQ(rank.differences.count, 0);
  }
}

constexpr const char* kNormedHeads =
    R"({"model": {"qk_layernorm": true, "rotary_percent": 0.5, "activation": "squared_relu"}})";
constexpr const char* kTensor2 = R"({"parallelism": {"tensor": 2}})";
constexpr const char* kTensor2Sp = R"({"parallelism": {"tensor": 2, "sequence_parallel": true}})";
constexpr const char* kTensor4 = R"({"parallelism": {"tensor": 4}})";
constexpr const char* kTensor4SharedHeads =
    R"({"model": {"num_query_groups": 2},
        "parallelism": {"tensor": 4, "sequence_parallel": true}})";
constexpr const char* kTensor4OneHead =
    R"({"model": {"num_query_groups": 1}, "parallelism": {"tensor": 4}})";
constexpr const char* kTensor4Sp =
    R"({"parallelism": {"tensor": 4, "sequence_parallel": true}, "training": {"optimizer": "sgd"}})";
constexpr const char* kParallel =
    R"({"model": {"parallel_residual": true}, "training": {"framework": "plain"}})";
constexpr const char* kParallelOneNorm =
    R"({"model": {"parallel_residual": true, "tied_layernorm": true},
        "training": {"framework": "plain"}})";
constexpr const char* kNormsOnBothSides =
    R"({"model": {"norm_position": "both", "norm_parameters": "weight", "add_output_bias": true},
        "training": {"framework": "plain", "optimizer": "sgd"}})";
constexpr const char* kTensor4Async =
    R"({"parallelism": {"tensor": 4, "sequence_parallel": true,
                        "tp_linear_async_communication": true},
        "training": {"framework": "nanotron"}})";
constexpr const char* kTensor2AsyncTwice =
    R"({"parallelism": {"tensor": 2, "data": 2, "sequence_parallel": true,
                        "tp_linear_async_communication": true, "tp_recompute_allgather": true},
        "training": {"framework": "nanotron"}})";
constexpr const char* kRecomputedModules =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "pipeline": 2},
        "training": {"recompute": "selective", "transformer_impl": "local",
                     "recompute_modules": ["layernorm", "mlp"]},
        "model": {"add_bias_linear": false}})";
constexpr const char* kDividedInputs =
    R"({"parallelism": {"tensor": 2, "pipeline": 2},
        "training": {"recompute": "full", "transformer_impl": "local",
                     "distribute_saved_activations": true}})";
constexpr const char* kPipeline2 = R"({"parallelism": {"pipeline": 2}})";
constexpr const char* kPipeline2Gpipe =
    R"({"parallelism": {"pipeline": 2, "pipeline_schedule": "gpipe"}})";
constexpr const char* kPipeline4 =
    R"({"parallelism": {"pipeline": 4}, "training": {"optimizer": "sgd"}})";
constexpr const char* kPipeline4Gpipe =
    R"({"parallelism": {"pipeline": 4, "pipeline_schedule": "gpipe"}})";
constexpr const char* kPipelineUneven =
    R"({"parallelism": {"pipeline": 3, "layers_per_stage": [2, 1, 1]}})";
constexpr const char* kData2 = R"({"parallelism": {"data": 2}})";
constexpr const char* kData2Zero =
    R"({"parallelism": {"data": 2, "zero_stage": 1}, "training": {"optimizer": "sgd"}})";
constexpr const char* kData4Overlap =
    R"({"parallelism": {"data": 4, "zero_stage": 1, "overlap_grad_reduce": true,
                        "overlap_param_gather": true, "bucket_elements": 5000}})";
constexpr const char* kData4Instances2 =
    R"({"parallelism": {"data": 4, "zero_stage": 1, "num_distributed_optimizer_instances": 2}})";
constexpr const char* kT2D4Instances2Overlap =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "data": 4, "zero_stage": 1,
                        "num_distributed_optimizer_instances": 2, "overlap_grad_reduce": true,
                        "overlap_param_gather": true, "bucket_elements": 5000}})";
constexpr const char* kData2Instances2 =
    R"({"parallelism": {"data": 2, "zero_stage": 1, "num_distributed_optimizer_instances": 2}})";
constexpr const char* kT2Muon =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "data": 2},
        "training": {"optimizer": "muon"}})";
constexpr const char* kT2D4Muon =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "data": 4, "zero_stage": 1,
                        "overlap_grad_reduce": true, "overlap_param_gather": true,
                        "bucket_elements": 5000},
        "training": {"optimizer": "muon"}})";
constexpr const char* kP2D2MuonInTurn =
    R"({"parallelism": {"pipeline": 2, "data": 2, "zero_stage": 1,
                        "use_layer_wise_param_layout": false},
        "training": {"optimizer": "muon", "muon_nesterov": true}})";
constexpr const char* kDeferred =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "pipeline": 2,
                        "defer_embedding_wgrad_compute": true, "wgrad_deferral_limit": 3}})";
constexpr const char* kT2P2 = R"({"parallelism": {"tensor": 2, "pipeline": 2}})";
constexpr const char* kT2D2 =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "data": 2}})";
constexpr const char* kP2D2Zero = R"({"parallelism": {"pipeline": 2, "data": 2, "zero_stage": 1}})";
constexpr const char* kT2P2D2 =
    R"({"parallelism": {"tensor": 2, "pipeline": 2, "data": 2, "zero_stage": 1,
                        "sequence_parallel": true}})";
constexpr const char* kT2P2D2Gpipe =
    R"({"parallelism": {"tensor": 2, "pipeline": 2, "data": 2, "pipeline_schedule": "gpipe"}})";
constexpr const char* kT4D2 =
    R"({"parallelism": {"tensor": 4, "data": 2, "zero_stage": 1, "sequence_parallel": true}})";
constexpr const char* kT4P2 = R"({"parallelism": {"tensor": 4, "pipeline": 2}})";
constexpr const char* kT2P4 =
    R"({"parallelism": {"tensor": 2, "pipeline": 4, "sequence_parallel": true}})";
constexpr const char* kT2D4 = R"({"parallelism": {"tensor": 2, "data": 4, "zero_stage": 1}})";
constexpr const char* kP4D2 =
    R"({"parallelism": {"pipeline": 4, "data": 2, "zero_stage": 1, "overlap_grad_reduce": true,
                        "bucket_elements": 5000}})";
constexpr const char* kP2D4 = R"({"parallelism": {"pipeline": 2, "data": 4}})";
constexpr const char* kFullRecompute =
    R"({"parallelism": {"tensor": 2, "pipeline": 2, "sequence_parallel": true},
        "training": {"recompute": "full"}})";
constexpr const char* kSelectiveRecompute =
    R"({"parallelism": {"tensor": 2, "pipeline": 2, "sequence_parallel": true},
        "training": {"recompute": "selective"}})";
constexpr const char* kUntied =
    R"({"model": {"tie_embeddings": false}, "parallelism": {"tensor": 2, "pipeline": 2}})";
constexpr const char* kPlainFramework =
    R"({"parallelism": {"tensor": 2, "pipeline": 2, "data": 2, "sequence_parallel": true},
        "training": {"framework": "plain", "make_vocab_size_divisible_by": 1}})";
constexpr const char* kInternevo =
    R"({"parallelism": {"tensor": 2, "data": 4, "zero_stage": 1, "overlap_grad_reduce": true,
                        "bucket_elements": 5000},
        "training": {"framework": "internevo"}})";
constexpr const char* kInternevoPipeline =
    R"({"parallelism": {"pipeline": 2, "data": 2, "zero_stage": 1},
        "training": {"framework": "internevo"}})";
constexpr const char* kTiedPadded =
    R"({"model": {"tie_embeddings": true, "vocab_size": 61},
        "parallelism": {"tensor": 2, "pipeline": 2},
        "training": {"make_vocab_size_divisible_by": 8}})";
constexpr const char* kBf16 =
    R"({"parallelism": {"tensor": 2, "pipeline": 2, "sequence_parallel": true, "data": 2,
                        "zero_stage": 1},
        "training": {"dtype": "bf16", "attention": "flash"}})";

// Context ranks need a kernel of 16-bit types. AdamW's first step is as large for a gradient that
// is nearly zero as for any other: of rounded ones, the plain step can be compared.
constexpr const char* kContext2 =
    R"({"parallelism": {"context": 2}, "training": {"dtype": "bf16", "optimizer": "sgd", "attention": "flash"}})";
constexpr const char* kContext4AllToAll =
    R"({"parallelism": {"context": 4, "context_comm": "a2a"},
        "training": {"dtype": "bf16", "optimizer": "sgd", "attention": "fused"}})";
constexpr const char* kT2C2D2Zero =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "context": 2, "data": 2,
                        "zero_stage": 1},
        "training": {"dtype": "bf16", "optimizer": "sgd", "attention": "fused"}})";
constexpr const char* kP2C4Zero =
    R"({"parallelism": {"pipeline": 2, "context": 4, "zero_stage": 1},
        "training": {"dtype": "bf16", "optimizer": "sgd", "attention": "flash", "recompute": "selective"}})";
constexpr const char* kT2C2AllToAllFullRecompute =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "context": 2,
                        "context_comm": "a2a"},
        "training": {"dtype": "bf16", "optimizer": "sgd", "attention": "flash", "recompute": "full"}})";

constexpr const char* kExpert2 =
    R"({"model": {"num_experts": 8, "moe_ffn_hidden_size": 16,
                  "moe_shared_expert_intermediate_size": 24},
        "parallelism": {"data": 2, "expert": 2}})";
constexpr const char* kExpert2Cut =
    R"({"model": {"num_experts": 4}, "parallelism": {"tensor": 2, "sequence_parallel": true,
        "data": 2, "expert": 2, "zero_stage": 1, "overlap_grad_reduce": true}})";
constexpr const char* kExpert4OverTensorRanks =
    R"({"model": {"num_experts": 12, "moe_router_topk": 3, "moe_ffn_hidden_size": 16,
                  "moe_router_score_function": "sigmoid", "moe_router_num_groups": 4,
                  "moe_router_group_topk": 3, "moe_router_topk_scaling_factor": 2.5,
                  "moe_aux_loss_coeff": 0.1},
        "parallelism": {"tensor": 2, "sequence_parallel": true, "data": 2, "expert": 4,
                        "expert_tensor": 1, "zero_stage": 1}})";
constexpr const char* kExpert2Pipeline =
    R"({"model": {"num_experts": 4, "moe_layer_freq": [0, 1, 1, 0]},
        "parallelism": {"pipeline": 2, "data": 4, "expert": 2, "zero_stage": 1}})";
constexpr const char* kExpertCapacity =
    R"({"model": {"num_experts": 4, "moe_router_pre_softmax": true, "moe_aux_loss_coeff": 0.1,
                  "moe_router_load_balancing_type": "seq_aux_loss"},
        "parallelism": {"data": 2, "expert": 2},
        "training": {"moe_expert_capacity_factor": 1.5, "recompute": "full",
                     "moe_pad_expert_input_to_capacity": true}})";
constexpr const char* kExpertsPlain =
    R"({"model": {"num_experts": 6}, "parallelism": {"data": 2, "expert": 2},
        "training": {"framework": "plain"}})";
constexpr const char* kExpert2Context2 =
    R"({"model": {"num_experts": 4, "moe_aux_loss_coeff": 0.1},
        "parallelism": {"context": 2, "expert": 2},
        "training": {"dtype": "bf16", "optimizer": "sgd", "attention": "flash"}})";

constexpr const char* kExpert2Overlap =
    R"({"model": {"num_experts": 4, "moe_ffn_hidden_size": 16, "moe_layer_freq": [0, 1, 1, 1],
                  "moe_shared_expert_intermediate_size": 24},
        "parallelism": {"data": 2, "expert": 2, "overlap_moe_expert_parallel_comm": true},
        "training": {"dtype": "bf16", "optimizer": "sgd", "global_batch_size": 8}})";
// More tokens are predicted, with a copied embedding, experts, and recomputation.
constexpr const char* kPredictions =
    R"({"model": {"mtp_num_layers": 2, "tie_embeddings": true},
        "parallelism": {"tensor": 2, "sequence_parallel": true, "pipeline": 2},
        "training": {"recompute": "full"}})";
constexpr const char* kPredictionsOfDataRanks =
    R"({"model": {"mtp_num_layers": 1, "tie_embeddings": false, "num_experts": 4},
        "parallelism": {"pipeline": 2, "data": 2, "expert": 2, "zero_stage": 1,
                        "layers_per_stage": [4, 0], "overlap_grad_reduce": true,
                        "overlap_param_gather": true}})";
constexpr const char* kPredictionsTensor2 =
    R"({"model": {"mtp_num_layers": 1}, "parallelism": {"tensor": 2, "data": 2}})";

INSTANTIATE_TEST_SUITE_P(
    Predictions,
    VerifiedLayout,
    testing::Values(Layout{"Tensor2SequencePipeline2", 4, kPredictions, true},
                    Layout{"Pipeline2Data2Zero", 4, kPredictionsOfDataRanks, true},
                    Layout{"Tensor2Data2", 4, kPredictionsTensor2, true}),
    testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Experts,
                         VerifiedLayout,
                         testing::Values(Layout{"Expert2", 2, kExpert2, true},
                                         Layout{"Expert2Cut", 4, kExpert2Cut, true},
                                         Layout{"Expert4", 4, kExpert4OverTensorRanks, true},
                                         Layout{"Pipeline2", 8, kExpert2Pipeline, true},
                                         Layout{"Capacity", 2, kExpertCapacity, true},
                                         Layout{"Plain", 2, kExpertsPlain, true},
                                         Layout{"Context2", 2, kExpert2Context2, true},
                                         Layout{"Overlap", 2, kExpert2Overlap, true}),
                         testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(
    Gpt,
    VerifiedLayout,
    testing::Values(Layout{"Tensor2", 2, kTensor2},
                    Layout{"Tensor2NormedHeads", 2, kTensor2, true, kNormedHeads},
                    Layout{"Tensor2SequenceNormedHeads", 2, kTensor2Sp, true, kNormedHeads},
                    Layout{"Tensor2Sequence", 2, kTensor2Sp},
                    Layout{"Tensor4", 4, kTensor4},
                    Layout{"Tensor4SequenceSgd", 4, kTensor4Sp},
                    Layout{"Tensor2Parallel", 2, kTensor2, false, kParallel},
                    Layout{"Tensor2SequenceParallel", 2, kTensor2Sp, false, kParallel},
                    Layout{
                        "Tensor4SequenceParallelOneNorm", 4, kTensor4Sp, false, kParallelOneNorm},
                    Layout{"Tensor2NormsOnBothSides", 2, kTensor2Sp, false, kNormsOnBothSides},
                    Layout{"Tensor4Async", 4, kTensor4Async, true},
                    Layout{"Tensor2Data2AsyncTwice", 4, kTensor2AsyncTwice, true},
                    Layout{"RecomputedModules", 4, kRecomputedModules},
                    Layout{"DividedInputs", 4, kDividedInputs},
                    Layout{"Pipeline2", 2, kPipeline2},
                    Layout{"Pipeline2Gpipe", 2, kPipeline2Gpipe},
                    Layout{"Pipeline4Sgd", 4, kPipeline4},
                    Layout{"Pipeline4Gpipe", 4, kPipeline4Gpipe},
                    Layout{"Pipeline3Uneven", 3, kPipelineUneven},
                    Layout{"Data2", 2, kData2},
                    Layout{"Data2ZeroSgd", 2, kData2Zero},
                    Layout{"Data4ZeroOverlap", 4, kData4Overlap},
                    Layout{"Data4Instances2", 4, kData4Instances2},
                    Layout{"Data2Instances2", 2, kData2Instances2},
                    Layout{"Tensor2Data4Instances2Overlap", 8, kT2D4Instances2Overlap},
                    Layout{"Tensor2Data2Muon", 4, kT2Muon},
                    Layout{"Tensor2Data4MuonByLayout", 8, kT2D4Muon},
                    Layout{"Pipeline2Data2MuonInTurn", 4, kP2D2MuonInTurn},
                    Layout{"DeferredWeightGradients", 4, kDeferred},
                    Layout{"Tensor2Pipeline2", 4, kT2P2},
                    Layout{"Tensor2SequenceData2", 4, kT2D2},
                    Layout{"Pipeline2Data2Zero", 4, kP2D2Zero},
                    Layout{"Tensor2SequencePipeline2Data2Zero", 8, kT2P2D2},
                    Layout{"Tensor2Pipeline2Data2Gpipe", 8, kT2P2D2Gpipe},
                    Layout{"Tensor4SequenceData2Zero", 8, kT4D2},
                    Layout{"Tensor4Pipeline2", 8, kT4P2},
                    Layout{"Tensor2SequencePipeline4", 8, kT2P4},
                    Layout{"Tensor2Data4Zero", 8, kT2D4},
                    Layout{"Pipeline4Data2ZeroOverlap", 8, kP4D2},
                    Layout{"Pipeline2Data4", 8, kP2D4},
                    Layout{"FullRecompute", 4, kFullRecompute},
                    Layout{"SelectiveRecompute", 4, kSelectiveRecompute},
                    Layout{"Untied", 4, kUntied},
                    Layout{"Context2", 2, kContext2},
                    Layout{"Context4AllToAll", 4, kContext4AllToAll},
                    Layout{"Tensor2Context2Data2Zero", 8, kT2C2D2Zero},
                    Layout{"Pipeline2Context4Zero", 8, kP2C4Zero},
                    Layout{"PlainFramework", 8, kPlainFramework},
                    Layout{"Internevo", 8, kInternevo},
                    Layout{"InternevoPipeline", 4, kInternevoPipeline},
                    Layout{"Bf16Flash", 8, kBf16}),
    testing::PrintToStringParamName());

constexpr const char* kOwnGradients =
    R"({"model": {"qk_layernorm": true},
        "parallelism": {"tensor": 2, "sequence_parallel": true, "pipeline": 2, "data": 2,
                        "overlap_grad_reduce": true},
        "training": {"framework": "torchtitan"}})";
constexpr const char* kFsdp2 =
    R"({"parallelism": {"data": 2, "zero_stage": 3}, "training": {"framework": "torchtitan"}})";
constexpr const char* kFsdp4Kept =
    R"({"parallelism": {"data": 4, "zero_stage": 2},
        "training": {"framework": "torchtitan", "optimizer": "sgd"}})";
constexpr const char* kFsdp4Replicas2 =
    R"({"parallelism": {"data": 4, "zero_stage": 3, "num_distributed_optimizer_instances": 2},
        "training": {"framework": "torchtitan"}})";
constexpr const char* kFsdp3Uneven =
    R"({"parallelism": {"data": 3, "zero_stage": 3},
        "training": {"framework": "torchtitan", "global_batch_size": 12}})";
constexpr const char* kT2Fsdp4 =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "data": 4, "zero_stage": 3},
        "training": {"framework": "torchtitan"}})";
constexpr const char* kFsdpRecompute =
    R"({"parallelism": {"data": 2, "zero_stage": 3},
        "training": {"framework": "torchtitan", "recompute": "full"}})";
constexpr const char* kFsdpByOperator =
    R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "data": 2, "zero_stage": 3},
        "training": {"framework": "torchtitan", "recompute": "selective"}})";
constexpr const char* kPipelineByOperator =
    R"({"parallelism": {"tensor": 2, "pipeline": 2},
        "training": {"framework": "torchtitan", "recompute": "selective"}})";
constexpr const char* kFsdp2Pipeline2 =
    R"({"parallelism": {"data": 2, "pipeline": 2, "zero_stage": 2},
        "training": {"framework": "torchtitan"}})";
constexpr const char* kFsdpBf16 =
    R"({"parallelism": {"data": 4, "zero_stage": 3},
        "training": {"framework": "plain", "dtype": "bf16", "attention": "flash"}})";

constexpr const char* kFsdp4Experts2Replicas2 =
    R"({"model": {"num_experts": 4, "moe_ffn_hidden_size": 16, "moe_layer_freq": [0, 1, 0, 1]},
        "parallelism": {"data": 4, "expert": 2, "zero_stage": 3,
                        "num_distributed_optimizer_instances": 2},
        "cluster": {"gpu": "h100-sxm"},
        "training": {"framework": "torchtitan", "dtype": "bf16", "attention": "flash"}})";
constexpr const char* kFsdp4Experts2 =
    R"({"model": {"num_experts": 4, "moe_ffn_hidden_size": 16, "moe_layer_freq": [0, 1, 0, 1]},
        "parallelism": {"data": 4, "expert": 2, "zero_stage": 3},
        "cluster": {"gpu": "h100-sxm"},
        "training": {"framework": "torchtitan", "dtype": "bf16", "attention": "flash"}})";
constexpr const char* kFsdp2Experts2ByOperator =
    R"({"model": {"num_experts": 6, "moe_router_topk": 3, "moe_ffn_hidden_size": 16,
                  "moe_shared_expert_intermediate_size": 24, "moe_apply_probs_on_input": true},
        "parallelism": {"data": 2, "expert": 2, "zero_stage": 2},
        "cluster": {"gpu": "h100-sxm"},
        "training": {"framework": "torchtitan", "dtype": "bf16", "attention": "flash",
                     "recompute": "selective"}})";

INSTANTIATE_TEST_SUITE_P(
    FullySharded,
    VerifiedLayout,
    testing::Values(Layout{"Data2", 2, kFsdp2, true},
                    Layout{"Replicated", 8, kOwnGradients, true},
                    Layout{"Data2Tied", 2, kFsdp2},
                    Layout{"Data4KeptAfterForwardSgd", 4, kFsdp4Kept, true},
                    Layout{"Data3Uneven", 3, kFsdp3Uneven, true},
                    Layout{"Tensor2SequenceData4", 8, kT2Fsdp4, true},
                    Layout{"Replicas2Accumulating", 4, kFsdp4Replicas2, true},
                    Layout{"FullRecompute", 2, kFsdpRecompute, true},
                    Layout{"Pipeline2", 4, kFsdp2Pipeline2, true},
                    Layout{"RecomputeByOperator", 4, kFsdpByOperator, true},
                    Layout{"Bf16Flash", 4, kFsdpBf16, true},
                    Layout{"Data4Experts2", 4, kFsdp4Experts2, true},
                    Layout{"Data4Experts2Replicas2", 4, kFsdp4Experts2Replicas2, true},
                    Layout{"Experts2ByOperator", 2, kFsdp2Experts2ByOperator, true}),
    testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(
    Llama,
    VerifiedLayout,
    testing::Values(Layout{"Tensor2", 2, kTensor2, true},
                    Layout{"Tensor4SequenceSgd", 4, kTensor4Sp, true},
                    Layout{"Tensor4SharedHeads", 4, kTensor4SharedHeads, true},
                    Layout{"Tensor4OneHead", 4, kTensor4OneHead, true},
                    Layout{"Pipeline4Sgd", 4, kPipeline4, true},
                    Layout{"Data2ZeroSgd", 2, kData2Zero, true},
                    Layout{"Tensor2SequencePipeline2Data2Zero", 8, kT2P2D2, true},
                    Layout{"Tensor2Pipeline2Data2Gpipe", 8, kT2P2D2Gpipe, true},
                    Layout{"FullRecompute", 4, kFullRecompute, true},
                    Layout{"SelectiveRecompute", 4, kSelectiveRecompute, true},
                    Layout{"RecomputeByOperator", 4, kPipelineByOperator, true},
                    Layout{"Context4AllToAll", 4, kContext4AllToAll, true},
                    Layout{"Tensor2Context2Data2Zero", 8, kT2C2D2Zero, true},
                    Layout{"Tensor2Context2AllToAll", 4, kT2C2AllToAllFullRecompute, true},
                    Layout{"PlainFramework", 8, kPlainFramework, true},
                    Layout{"Internevo", 8, kInternevo, true},
                    Layout{"TiedAndPadded", 4, kTiedPadded, true},
                    Layout{"Bf16Flash", 8, kBf16, true}),
    testing::PrintToStringParamName());

// Multi-latent attention: heads of 8 and 8 more with positions, values of 8: TransformerEngine's
// fused kernels need multiples of 8.
constexpr const char* kLatent =
    R"({"model": {"multi_latent_attention": true, "q_lora_rank": 12, "kv_lora_rank": 16,
                  "qk_head_dim": 8, "qk_pos_emb_head_dim": 8, "v_head_dim": 8,
                  "qk_layernorm": true}})";
constexpr const char* kDirectQueries =
    R"({"model": {"multi_latent_attention": true, "kv_lora_rank": 16, "qk_head_dim": 8,
                  "qk_pos_emb_head_dim": 8, "v_head_dim": 8}})";
constexpr const char* kBf16Fused =
    R"({"parallelism": {"tensor": 2, "pipeline": 2, "sequence_parallel": true},
        "training": {"dtype": "bf16", "attention": "fused"}})";
constexpr const char* kFsdp2Plain =
    R"({"parallelism": {"data": 2, "zero_stage": 3}, "training": {"framework": "plain"}})";

// Megatron-Bridge's adapters, whose matrices the tensor ranks split.
constexpr const char* kAdapters = R"({"training": {"framework": "megatron-lm", "lora_rank": 4}})";
constexpr const char* kAdaptersOfOne =
    R"({"training": {"framework": "megatron-lm", "lora_rank": 4,
                     "lora_target_modules": ["linear_qkv"]}})";
constexpr const char* kExchangingAdapters =
    R"({"training": {"framework": "megatron-lm", "lora_rank": 4,
                     "lora_a2a_experimental": true}})";
constexpr const char* kAdaptersOfOwnLayers =
    R"({"training": {"framework": "megatron-lm", "lora_rank": 4, "transformer_impl": "local"}})";

INSTANTIATE_TEST_SUITE_P(
    Adapters,
    VerifiedLayout,
    testing::Values(Layout{"Tensor2", 2, kTensor2, true, kAdapters},
                    Layout{"Tensor2Sequence", 2, kTensor2Sp, true, kAdapters},
                    Layout{"Tensor2SequenceOfOne", 2, kTensor2Sp, true, kAdaptersOfOne},
                    Layout{"Tensor2SequenceAllToAll", 2, kTensor2Sp, true, kExchangingAdapters},
                    Layout{"Tensor2SequenceLocal", 2, kTensor2Sp, true, kAdaptersOfOwnLayers},
                    Layout{"Tensor2SequencePipeline2Data2Zero", 8, kT2P2D2, true, kAdapters},
                    Layout{"FullRecompute", 4, kFullRecompute, true, kAdapters}),
    testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(
    Latent,
    VerifiedLayout,
    testing::Values(Layout{"Tensor2Sequence", 2, kTensor2Sp, true, kLatent},
                    Layout{"Tensor4SequenceSgd", 4, kTensor4Sp, true, kDirectQueries},
                    Layout{"Pipeline2", 2, kPipeline2, true, kLatent},
                    Layout{"Tensor2SequencePipeline2Data2Zero", 8, kT2P2D2, true, kLatent},
                    Layout{"FullRecompute", 4, kFullRecompute, true, kLatent},
                    Layout{"SelectiveRecompute", 4, kSelectiveRecompute, true, kLatent},
                    Layout{"PlainFramework", 8, kPlainFramework, true, kLatent},
                    Layout{"FullySharded", 2, kFsdp2Plain, true, kLatent},
                    Layout{"Bf16Fused", 4, kBf16Fused, true, kLatent}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace sim
