// What a rank with experts calls and holds under Megatron-LM, on the virtual GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "estimator/base/units.h"
#include "tests/sim/rank/executed_rank.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::RankProfile;

/// Two layers of four small experts with a balancing loss, on four ranks.
estimator::Plan experts_plan(const Json& changes) {
  Json tree = {{"model",
                {{"hidden_size", 128},
                 {"num_attention_heads", 4},
                 {"num_experts", 4},
                 {"moe_ffn_hidden_size", 64},
                 {"moe_aux_loss_coeff", 0.01},
                 {"add_bias_linear", false}}},
               {"cluster", {{"gpu", "h100"}, {"gpus_per_node", 4}}},
               {"parallelism", {{"data", 4}, {"expert", 2}, {"zero_stage", 1}}},
               {"training",
                {{"attention", "fused"},
                 {"sequence_length", 64},
                 {"micro_batch_size", 1},
                 {"global_batch_size", 8}}}};
  tree.merge_patch(changes);
  return gpt_plan(tree);
}

int64_t calls(const RankProfile& profile, estimator::CollectiveKind kind, const char* phase) {
  int64_t count = 0;
  for (const auto& record : profile.collectives) {
    if (record.call.kind == kind && record.phase == phase) count += record.executed_count;
  }
  return count;
}

// all_to_all_single() without async_op, in mappings.py of megatron/core/tensor_parallel.
TEST(Experts, ExchangeTokensOnTheStreamOnWhichTheyCompute) {
  const auto profile = execute(experts_plan(Json::object()));
  const auto& events = profile.order->events;
  int64_t exchanges = 0;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto& call = profile.collectives[static_cast<std::size_t>(events.item[i])].call;
    if (call.kind != estimator::CollectiveKind::kAllToAll) continue;
    EXPECT_EQ(events.stream[i], estimator::kMainStream);
    ++exchanges;
  }
  EXPECT_GT(exchanges, 0);
}

/// The streams on which a profile's tokens are exchanged.
std::set<int64_t> streams_of_exchanges(const RankProfile& profile) {
  std::set<int64_t> streams;
  const auto& events = profile.order->events;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto& call = profile.collectives[static_cast<std::size_t>(events.item[i])].call;
    if (call.kind == estimator::CollectiveKind::kAllToAll) streams.insert(events.stream[i]);
  }
  return streams;
}

// set_streams() and combined_1f1b_schedule_for_no_pipelining() of Megatron-LM.
TEST(Experts, ThatOverlapExchangeTokensOnAnotherStreamAndHaveOneMoreForwardInFlight) {
  const auto usual = execute(experts_plan(Json::object()));
  const auto overlapped =
      execute(experts_plan({{"parallelism", {{"overlap_moe_expert_parallel_comm", true}}}}));
  const std::set<int64_t> streams = streams_of_exchanges(overlapped);
  EXPECT_EQ(streams.size(), 1u);
  EXPECT_FALSE(streams.contains(estimator::kMainStream));
  EXPECT_EQ(usual.micro_batches.most_in_flight, 1);
  EXPECT_EQ(overlapped.micro_batches.most_in_flight, 2);
  EXPECT_GT(overlapped.peak.allocated_bytes, usual.peak.allocated_bytes);
}

// TransformerModelChunkSchedulePlan.run() drops a layer when its backward has ended. The peak is in
// the loss, where that of another micro-batch has.
TEST(Experts, ThatOverlapHoldNothingOfALayerWhoseBackwardHasEnded) {
  const auto bytes_of_layer = [](bool overlapped) {
    const auto peak_of = [&](int64_t layers) {
      return execute(experts_plan(
                         {{"model", {{"num_layers", layers}, {"vocab_size", 131'072}}},
                          {"parallelism", {{"overlap_moe_expert_parallel_comm", overlapped}}}}))
          .peak.allocated_bytes;
    };
    return peak_of(4) - peak_of(2);
  };
  constexpr int64_t kHidden = 2 * 64 * 128;
  EXPECT_LT(bytes_of_layer(true) - bytes_of_layer(false), 2 * kHidden);
}

/// How often matrices are multiplied, by operator and direction.
std::map<std::string, int64_t> products(const RankProfile& profile) {
  std::map<std::string, int64_t> counts;
  for (const auto& record : profile.operators) {
    if (record.name.find("mm") == std::string::npos) continue;
    counts[record.name + "/" + std::to_string(static_cast<int>(record.direction))] += record.count;
  }
  return counts;
}

TEST(Experts, MultiplyAsOftenWhereTheyOverlapAndDelayGradients) {
  const auto usual = products(execute(experts_plan(Json::object())));
  for (const bool delayed : {false, true}) {
    EXPECT_EQ(products(execute(experts_plan({{"parallelism",
                                              {{"overlap_moe_expert_parallel_comm", true},
                                               {"delay_wgrad_compute", delayed}}}}))),
              usual);
  }
}

// start_grad_sync() in megatron/core/distributed/distributed_data_parallel.py.
TEST(Experts, OfAnInterleavedChunkAreReducedAfterItsOtherParameters) {
  const auto profile = execute(experts_plan(
      {{"model", {{"num_layers", 4}}},
       {"cluster", {{"gpus_per_node", 8}}},
       {"parallelism", {{"pipeline", 2}, {"virtual_stages", 2}, {"overlap_grad_reduce", true}}}}));
  const auto& events = profile.order->events;
  std::vector<estimator::GroupKind> groups;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto& call = profile.collectives[static_cast<std::size_t>(events.item[i])].call;
    if (call.kind == estimator::CollectiveKind::kReduceScatter) groups.push_back(call.group);
  }
  using enum estimator::GroupKind;
  // The first chunk, which ends last, has two buckets.
  EXPECT_EQ(groups,
            (std::vector{kDataContext, kExpertData, kDataContext, kDataContext, kExpertData}));
}

TEST(Experts, BothOfTheirOptimizersGatherAllParameters) {
  const auto gathers = [](bool overlapped) {
    const auto profile = execute(experts_plan(
        {{"parallelism", {{"overlap_param_gather", overlapped}, {"overlap_grad_reduce", true}}}}));
    int64_t count = 0;
    for (const auto& record : profile.collectives) {
      const bool is_gather = record.call.kind == estimator::CollectiveKind::kAllGather;
      if (is_gather && record.direction == estimator::Direction::kOptimizerStep)
        count += record.count;
    }
    return count;
  };
  // One bucket of experts and one of all else.
  EXPECT_EQ(gathers(true), 2);
  EXPECT_EQ(gathers(false), 4);
}

// ChainedOptimizer.step(): that of the experts quantizes after the first one has gathered.
TEST(Experts, AgreeOnScalesBetweenTheGathersOfBothOptimizers) {
  const auto profile = execute(experts_plan({{"training",
                                              {{"dtype", "bf16"},
                                               {"fp8_format", "hybrid"},
                                               {"fp8_recipe", "tensorwise"},
                                               {"fp8_param_gather", true}}}}));
  const auto& events = profile.order->events;
  std::string calls;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    const bool is_call = events.kind[i] == static_cast<int64_t>(estimator::OrderKind::kCollective);
    const auto of = static_cast<estimator::Direction>(events.direction[i]);
    if (!is_call || of != estimator::Direction::kOptimizerStep) continue;
    const auto& call = profile.collectives[static_cast<std::size_t>(events.item[i])].call;
    const bool agrees = call.kind == estimator::CollectiveKind::kAllReduce &&
                        call.group == estimator::GroupKind::kExpertData;
    if (call.kind == estimator::CollectiveKind::kAllGather) calls += 'g';
    if (agrees) calls += 'a';
  }
  const std::size_t agreed = calls.find('a');
  ASSERT_NE(agreed, std::string::npos);
  EXPECT_EQ(calls.substr(0, agreed), calls.substr(agreed + 1)) << calls;
}

// MXFP8's weights are gathered in the memory of the gradients, which all optimizers read first
// (_should_defer_mxfp8_param_sync in megatron/core/optimizer/optimizer.py).
TEST(Experts, OfMxfp8AreGatheredOnceAfterBothOptimizers) {
  const auto gathers = [](const char* core) {
    const auto profile = execute(experts_plan({{"cluster", {{"gpu", "b200"}}},
                                               {"training",
                                                {{"dtype", "bf16"},
                                                 {"fp8_format", "e4m3"},
                                                 {"fp8_recipe", "mxfp8"},
                                                 {"fp8_param_gather", true},
                                                 {"megatron_core", core}}}}));
    return calls(profile, estimator::CollectiveKind::kAllGather, "optimizer_step");
  };
  EXPECT_GT(gathers("0.18"), 0);
  EXPECT_EQ(gathers("0.17"), 2 * gathers("0.18"));
}

TEST(Experts, ThatNoRanksDivideLieInTheBufferOfAllElse) {
  const auto profile = execute(experts_plan({{"parallelism", {{"expert", 1}}}}));
  EXPECT_EQ(calls(profile, estimator::CollectiveKind::kReduceScatter, "forward_backward"), 1);
  EXPECT_EQ(calls(profile, estimator::CollectiveKind::kAllGather, "optimizer_step"), 1);
}

TEST(Experts, AreBalancedOnceWhereTheirLayerIsRunTwice) {
  const auto sums = [](const char* recompute) {
    const auto profile = execute(
        experts_plan({{"parallelism", {{"tensor", 2}, {"sequence_parallel", true}, {"data", 2}}},
                      {"training", {{"recompute", recompute}}}}));
    int64_t count = 0;
    for (const auto& record : profile.collectives) {
      const bool is_count =
          record.call.dtype == "Long" && record.call.kind == estimator::CollectiveKind::kAllReduce;
      if (is_count) count += record.count;
    }
    return count;
  };
  EXPECT_EQ(sums("none"), 4 * 2);  // micro-batches, layers
  EXPECT_EQ(sums("full"), sums("none"));
}

/// Of a step of TorchTitan with four layers of four experts: the groups over which the norms of the
/// experts' three tensors are summed.
std::vector<estimator::GroupKind> groups_of_expert_norms(int64_t replicas) {
  Json changes = {
      {"model", {{"num_layers", 4}, {"moe_aux_loss_coeff", 0}, {"activation", "swiglu"}}},
      {"cluster", {{"gpus_per_node", 4 * replicas}}},
      {"parallelism",
       {{"data", 4 * replicas},
        {"num_distributed_optimizer_instances", replicas},
        {"expert", 2},
        {"zero_stage", 3}}},
      {"training", {{"framework", "torchtitan"}, {"dtype", "bf16"}}}};
  constexpr int64_t kNorms = 4 * 3 * 4;
  std::vector<estimator::GroupKind> groups;
  for (const auto& record : execute(experts_plan(changes)).collectives) {
    const bool is_sum = record.call.kind == estimator::CollectiveKind::kAllReduce &&
                        record.direction == estimator::Direction::kOptimizerStep;
    if (is_sum && record.call.bytes == kNorms) groups.push_back(record.call.group);
  }
  return groups;
}

// The expert ranks and those with the same experts are together TorchTitan's loss mesh, unless it
// has replicas.
TEST(Experts, OfTorchTitanAddUpTheirNormsOverBothDimensionsOfTheirMeshAtOnce) {
  using enum estimator::GroupKind;
  using Groups = std::vector<estimator::GroupKind>;
  EXPECT_EQ(groups_of_expert_norms(1), Groups{kDataContext});
  EXPECT_EQ(groups_of_expert_norms(2), (Groups{kExpertData, kExpert}));
}

/// TorchTitan's Llama 4, or its Qwen3, under FSDP2 on four ranks; two layers.
Json titan(bool is_qwen3) {
  return {{"model",
           {{"moe_aux_loss_coeff", 0},
            {"activation", "swiglu"},
            {"qk_layernorm", is_qwen3},
            {"position_embedding", "rope"},
            {"normalization", "RMSNorm"}}},
          {"parallelism", {{"expert", 1}, {"zero_stage", 3}}},
          {"training", {{"framework", "torchtitan"}, {"dtype", "bf16"}}}};
}

/// The last collective of an optimizer's step.
estimator::CollectiveRecord last_of_step(const RankProfile& profile) {
  estimator::CollectiveRecord last;
  const auto& events = profile.order->events;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto& record = profile.collectives[static_cast<std::size_t>(events.item[i])];
    if (record.direction == estimator::Direction::kOptimizerStep) last = record;
  }
  return last;
}

// _update_expert_bias in torchtitan/components/optimizer.py: a sum of 2 x 4 numbers over all ranks,
// and the sign of each layer's differences from the mean.
TEST(Experts, OfTorchTitansLlama4AreBalancedOnceInAStep) {
  const auto sums = [](const RankProfile& profile) {
    int64_t count = 0;
    for (const auto& record : profile.collectives) {
      const bool is_sum = record.call.kind == estimator::CollectiveKind::kAllReduce &&
                          record.call.bytes == 2 * 4 * 4;
      if (is_sum) count += record.count;
    }
    return count;
  };
  const auto signs = [](const RankProfile& profile) {
    int64_t count = 0;
    for (const auto& record : profile.operators) {
      if (record.name == "aten::sign") count += record.count;
    }
    return count;
  };
  const auto llama4 = execute(experts_plan(titan(false))),
             qwen3 = execute(experts_plan(titan(true)));
  EXPECT_EQ(sums(llama4), 1);
  EXPECT_EQ(last_of_step(llama4).call.bytes, 2 * 4 * 4);  // after the gradients were clipped
  EXPECT_EQ(signs(llama4), 2);
  EXPECT_EQ(sums(qwen3), 0);
  EXPECT_EQ(signs(qwen3), 0);
}

// A rank's expert has three tensors of 88 x 128 in a unit of its own. Where no other rank has it,
// each is cast and then copied, in forward and in backward of both micro-batches and layers.
TEST(Experts, OfTorchTitanAreCopiedWhereNobodyElseHasThem) {
  Json changes = titan(false);
  changes["model"]["moe_ffn_hidden_size"] = 88;
  changes["parallelism"]["expert"] = 4;
  std::map<double, int64_t> copies;
  for (const auto& record : execute(experts_plan(changes)).operators) {
    if (record.name == "aten::copy_") copies[record.bytes] += record.count;
    EXPECT_NE(record.name, "aten::atleast_2d");  // a view, of vstack()
  }
  constexpr double kElements = 88 * 128;
  EXPECT_EQ(copies[kElements * (4 + 2)], 2 * 2 * 2 * 3);
  EXPECT_EQ(copies[kElements * (2 + 2)], 2 * 2 * 2 * 3);
}

Json flex(const char* backend) {
  return {{"training",
           {{"moe_token_dispatcher_type", "flex"}, {"moe_flex_dispatcher_backend", backend}}}};
}

// A micro-batch of two layers, each with a norm of its own before its experts; and one at the end.
TEST(Experts, TellTheNamesOfThePythonThatTheyStandFor) {
  const auto counts = [](const Json& changes) {
    const auto profile = execute(experts_plan(changes));
    std::map<std::string, int64_t> of;
    for (const estimator::TraceRange& range : profile.order->ranges) ++of[range.name];
    return of;
  };
  auto named = counts(Json::object());
  for (const std::string pass : {"", "Backward"}) {
    EXPECT_EQ(named["TransformerLayer" + pass], 2);
    EXPECT_EQ(named["_LayerNormLinear" + pass], 2);
    EXPECT_EQ(named["FusedAttnFunc" + pass], 2);
    EXPECT_EQ(named["_Linear" + pass], 2);
    EXPECT_EQ(named["_OperationFuserAutogradFunction" + pass], 2 + 1);
    EXPECT_EQ(named["TopKRouter" + pass], 2);
    EXPECT_EQ(named["TEGroupedMLP" + pass], 2);
    EXPECT_EQ(named["_GroupedLinear" + pass], 2 * 2);
  }
  EXPECT_EQ(named["MoELayer"], 2);
  for (const std::string method : {"dispatch_preprocess", "token_dispatch", "token_combine"}) {
    EXPECT_EQ(named["MoEAlltoAllTokenDispatcher." + method], 2);
    EXPECT_EQ(counts(flex("hybridep"))["MoEAlltoAllTokenDispatcher." + method], 0);
  }
  EXPECT_TRUE(counts({{"training", {{"framework", "plain"}}}}).empty());
}

/// How often the rank calls a kernel in an iteration.
int64_t kernels_named(const RankProfile& profile, const std::string& name) {
  int64_t count = 0;
  for (const auto& record : profile.operators) {
    if (record.name == name) count += record.count;
  }
  return count;
}

// Of each of 2 micro-batches and 2 layers a dispatch and a combine, and the same backward.
TEST(Experts, OfTheFlexDispatcherCallItsKernelsAndNoAllToAll) {
  for (const char* backend : {"deepep", "hybridep"}) {
    SCOPED_TRACE(backend);
    const auto profile = execute(experts_plan(flex(backend)));
    EXPECT_EQ(kernels_named(profile, "ep::dispatch"), 2 * 2 * 2);
    EXPECT_EQ(kernels_named(profile, "ep::combine"), 2 * 2 * 2);
    EXPECT_EQ(calls(profile, estimator::CollectiveKind::kAllToAll, "forward_backward"), 0);
  }
}

// dispatch_with_permute() in deep_ep/hybrid_ep_buffer.py and Executor::dispatch_preprocess.
TEST(Experts, OfHybridEpLearnTheMapOfAllRanksAndCopyTokensThatCrossNodes) {
  const auto of_nodes = [](int64_t gpus_per_node) {
    Json changes = flex("hybridep");
    changes["cluster"] = {{"gpus_per_node", gpus_per_node}, {"nodes", 4 / gpus_per_node}};
    return execute(experts_plan(changes));
  };
  const auto near = of_nodes(4), far = of_nodes(1);
  EXPECT_EQ(kernels_named(near, "ep::metadata_preprocessing"), 2 * 2);
  EXPECT_EQ(kernels_named(near, "ep::permute_processing"), 2 * 2);
  EXPECT_EQ(kernels_named(near, "ep::copy_to_buffer"), 0);
  EXPECT_EQ(kernels_named(far, "ep::copy_to_buffer"), 2 * 2 * 2);
  const auto gathers_map = [](const estimator::CollectiveRecord& record) {
    return record.call.kind == estimator::CollectiveKind::kAllGather &&
           record.call.dtype == "Bool" && record.call.bytes == 2 * 64 * 4;
  };
  EXPECT_TRUE(std::any_of(far.collectives.begin(), far.collectives.end(), gathers_map));
}

/// SwiGLU in MXFP8 with TransformerEngine's fused kernels; two micro-batches of 256 tokens, each
/// with two experts, and memory for half as many rows again.
estimator::Plan fused_plan(const Json& changes = Json::object()) {
  Json tree = flex("hybridep");
  tree.merge_patch({{"model",
                     {{"activation", "swiglu"},
                      {"moe_router_topk", 2},
                      {"hidden_size", 128},
                      {"attention_dropout", 0}}},
                    {"cluster", {{"gpu", "gb200"}}},
                    {"training",
                     {{"dtype", "bf16"},
                      {"sequence_length", 256},
                      {"fp8_format", "e4m3"},
                      {"fp8_recipe", "mxfp8"},
                      {"fp8_param_gather", true},
                      {"use_transformer_engine_op_fuser", true},
                      {"moe_mlp_glu_interleave_size", 32},
                      {"moe_expert_rank_capacity_factor", 1.5}}}});
  tree.merge_patch(changes);
  return experts_plan(tree);
}
const Json kStash = {{"training", {{"moe_paged_stash", true}}}};

// GroupedMLP_CuTeGEMMGLU in transformer_engine/pytorch/ops/fused/grouped_mlp.py: the products of
// all experts are one kernel, with the activation and its casts.
TEST(Experts, InFusedKernelsRunTogether) {
  const auto profile = execute(fused_plan());
  EXPECT_EQ(kernels_named(profile, "cudnn::grouped_gemm_glu"), 2 * 2);
  EXPECT_EQ(kernels_named(profile, "cudnn::grouped_gemm_dglu"), 2 * 2);
  EXPECT_EQ(kernels_named(profile, "cudnn::grouped_gemm_quant"), 2 * 2 * 2);
  EXPECT_EQ(kernels_named(profile, "cudnn::grouped_gemm_wgrad"), 2 * 2 * 2);
  EXPECT_EQ(kernels_named(profile, "te::group_quantize"), 2 * 2 * 2);
  EXPECT_EQ(kernels_named(profile, "te::grouped_scaled_mm"), 0);
  EXPECT_EQ(kernels_named(profile, "megatron::weighted_swiglu"), 0);
}

// The rows that come, 512, twice the width of an expert, 64; the gradients of weights as much
// again.
TEST(Experts, InFusedKernelsMultiplyTheRowsThatCome) {
  const auto profile = execute(fused_plan());
  std::map<std::string, double> flops;
  for (const auto& record : profile.operators) {
    if (record.name.starts_with("cudnn::"))
      flops[record.name] += record.flops * static_cast<double>(record.count);
  }
  const double layer = 2.0 * 512 * 128 * 64;
  EXPECT_EQ(flops["cudnn::grouped_gemm_glu"], 2 * 2 * 2 * layer);
  EXPECT_EQ(flops["cudnn::grouped_gemm_dglu"], 2 * 2 * layer);
  EXPECT_EQ(flops["cudnn::grouped_gemm_quant"], 2 * 2 * 3 * layer);
  EXPECT_EQ(flops["cudnn::grouped_gemm_wgrad"], 2 * 2 * 3 * layer);
}

// PagedStashManager: of both layers the first one's tensors go to pages, as the backward of the
// second comes next; six tensors each.
TEST(Experts, WithAPagedStashKeepRowsThatCame) {
  const auto stashing = execute(fused_plan(kStash));
  EXPECT_EQ(kernels_named(stashing, "megatron::paged_stash_copy"), 2 * 6);
  EXPECT_EQ(kernels_named(stashing, "megatron::paged_stash_pop"), 2 * 6);
  EXPECT_EQ(kernels_named(execute(fused_plan()), "megatron::paged_stash_copy"), 0);
}

/// Of pages for two layers that keep `rows` rows each in the mean, or so many blocks of them.
int64_t page_rows(int64_t rows) {
  const auto all = static_cast<int64_t>(static_cast<double>(2 * rows) * 1.1);
  return estimator::round_up(all, 64);
}

// PagedStashBuffer: memory of pages, and two lists of their numbers, for each width and type: rows
// and results in 8 bits, the activation's input and the weights of rows; scales for 32 rows.
TEST(Experts, WithAPagedStashHavePagesForAFactorOfTheMean) {
  const auto lasting = [](const Json& changes) {
    return execute(fused_plan(changes)).phases.back().after.allocated_bytes;
  };
  const int64_t values = page_rows(512) * (128 + 64 + 2 * 128 + 4);
  const int64_t scales = page_rows(512 / 32) * (128 + 64);
  constexpr int64_t kBlocks = 6 * 3 * 512;  // to which the allocator rounds up, and the lists
  const int64_t added = lasting(kStash) - lasting(Json::object());
  EXPECT_GE(added, values + scales);
  EXPECT_LE(added, values + scales + kBlocks);
}

// RouterGatingLinearFunction in megatron/core/transformer/moe/moe_utils.py: the backward reads
// fp32.
TEST(Experts, HaveARouterOfTransformerEnginesProducts) {
  const auto profile = execute(experts_plan({{"training", {{"moe_router_dtype", "fp32"}}}}));
  std::map<std::string, int64_t> of_type;
  for (const auto& record : profile.operators) {
    if (record.name == "te::mm") of_type[record.dtype] += record.count;
  }
  EXPECT_EQ(of_type, (std::map<std::string, int64_t>{{"Half", 2 * 2}, {"Float", 2 * 2 * 2}}));
}

// preprocess() in token_dispatcher.py reads four tensors from the device, and make_row_id_map() has
// three kernels; both of a layer's sorts make a map.
TEST(Experts, OfTheAllToAllDispatcherMakeTheirMapsAndReadTheirCounts) {
  const auto profile =
      execute(experts_plan({{"parallelism", {{"expert", 2}}}, {"model", {{"num_experts", 8}}}}));
  EXPECT_EQ(kernels_named(profile, "te::moe_row_map"), 2 * 2 * 3);
  EXPECT_EQ(kernels_named(profile, "te::moe_sort_map"), 2 * 2 * 2);
}

// topk() gives the scores of the experts that it chooses, and keeps their numbers alone; gather()
// is the backward of scatter(), which spreads the weights. Each loss has one, too.
TEST(Experts, AreGivenTheirScoresByTheChoice) {
  EXPECT_EQ(kernels_named(execute(experts_plan(Json::object())), "aten::gather"), 2 * 2 + 2);
}

// Inputs and output gradients of both layers; multi_tensor_quantize_impl in cast.cpp.
TEST(Experts, InEightBitsOfKnownScalesAreQuantizedByOneKernel) {
  const auto kernels = [](const char* recipe) {
    return kernels_named(
        execute(experts_plan(
            {{"training", {{"dtype", "bf16"}, {"fp8_format", "hybrid"}, {"fp8_recipe", recipe}}}})),
        "te::multi_cast_transpose");
  };
  EXPECT_EQ(kernels("delayed"), 2 * 2 * 4);
  EXPECT_EQ(kernels("tensorwise"), 0);
}

// Two weights of each of two own experts and layers, and two of each layer's attention: of each the
// largest element, in one call of each optimizer (ChainedOptimizer, and quantize_param_shard in
// megatron/core/fp8_utils.py).
TEST(Experts, AgreeOnTheScalesOfTheirWeightsApart) {
  const auto profile = execute(experts_plan({{"training",
                                              {{"dtype", "bf16"},
                                               {"fp8_format", "hybrid"},
                                               {"fp8_recipe", "tensorwise"},
                                               {"fp8_param_gather", true}}}}));
  using enum estimator::GroupKind;
  std::map<estimator::GroupKind, int64_t> bytes;
  for (const auto& record : profile.collectives) {
    const bool is_of_step = record.call.kind == estimator::CollectiveKind::kAllReduce &&
                            record.direction == estimator::Direction::kOptimizerStep;
    if (is_of_step && record.call.bytes > 8) bytes[record.call.group] += record.call.bytes;
  }
  EXPECT_EQ(bytes,
            (std::map<estimator::GroupKind, int64_t>{{kDataContext, 2 * 2 * 4},
                                                     {kExpertData, 2 * 2 * 2 * 4}}));
}

// weighted_swiglu_back in megatron/core/fusions/fused_bias_swiglu.py, of which Inductor makes two.
TEST(Experts, HaveAKernelOfItsOwnForTheGradientOfTheirWeights) {
  const auto profile = execute(experts_plan({{"model", {{"activation", "swiglu"}}}}));
  EXPECT_EQ(kernels_named(profile, "megatron::weighted_swiglu_backward"), 2 * 2);
  EXPECT_EQ(kernels_named(profile, "megatron::weighted_swiglu_weights_backward"), 2 * 2);
}

TEST(Experts, OfTheFlexDispatcherHoldNoRowsThatAreSent) {
  const auto peak = [](const Json& dispatcher) {
    Json wide = {{"model", {{"hidden_size", 1024}}},
                 {"training", {{"sequence_length", 512}, {"recompute", "none"}}}};
    wide.merge_patch(dispatcher);
    return execute(experts_plan(wide)).peak.allocated_bytes;
  };
  EXPECT_LT(peak(flex("hybridep")), peak(Json::object()));
}

TEST(Experts, HaveOneKernelWhereTheRouterIsFused) {
  const auto profile = execute(experts_plan({{"training", {{"moe_router_fusion", true}}}}));
  EXPECT_EQ(kernels_named(profile, "te::fused_topk_with_score_function"), 2 * 2);
  EXPECT_EQ(kernels_named(profile, "te::fused_moe_aux_loss_backward"), 2 * 2);
  EXPECT_EQ(kernels_named(profile, "aten::topk"), 0);
}

/// A tensor of the residual stream.
constexpr int64_t kHiddenBytes = 64 * 128 * 2;

// Inputs of both layers and the gradients of outputs, and a pool that is never smaller.
TEST(Experts, WithGraphsOfLayersHoldWhatGraphsRead) {
  const auto profile = [](const char* impl) {
    return execute(experts_plan(
        {{"training",
          {{"cuda_graph_impl", impl}, {"cuda_graph_modules", {"attn", "moe_router"}}}}}));
  };
  // Nothing is tuned in the second iteration.
  const auto peak = [](const RankProfile& of) {
    for (const auto& phase : of.phases) {
      if (phase.name == "iteration_1.forward_backward") return phase.peak.allocated_bytes;
    }
    return int64_t{0};
  };
  const RankProfile graphs = profile("transformer_engine"), none = profile("none");
  EXPECT_GE(peak(graphs) - peak(none), 2 * kHiddenBytes);
  EXPECT_GT(graphs.peak.reserved_bytes, none.peak.reserved_bytes);
  EXPECT_EQ(kernels_named(graphs, "te::grouped_mm"), kernels_named(none, "te::grouped_mm"));
}

TEST(Experts, HaveTheirPermutationsTunedInTheFirstIterationAlone) {
  const auto profile = execute(experts_plan(Json::object()));
  const auto above_state = [&](const char* name) {
    for (const auto& phase : profile.phases) {
      if (phase.name == name) return phase.peak.allocated_bytes - phase.before.allocated_bytes;
    }
    ADD_FAILURE() << "no phase " << name;
    return int64_t{0};
  };
  // Triton clears 256 MiB between the tries.
  EXPECT_GE(above_state("iteration_0.forward_backward"), 256 * estimator::kMiB);
  EXPECT_LT(above_state("iteration_1.forward_backward"), 64 * estimator::kMiB);
}

// MoEAlltoAllTokenDispatcher keeps the weights of the last tokens, and with them the graph that
// made them: of a layer that was run again, down to its input with that one's gradient.
TEST(Experts, KeepTheLastInputOfALayerThatIsRunTwice) {
  const auto held_of_a_sequence = [](const char* recompute) {
    const auto held = [&](int64_t sequences) {
      const auto profile =
          execute(experts_plan({{"model", {{"num_layers", 4}, {"tie_embeddings", false}}},
                                {"parallelism", {{"pipeline", 2}, {"data", 2}}},
                                {"training",
                                 {{"recompute", recompute},
                                  {"micro_batch_size", sequences},
                                  {"global_batch_size", 8 * sequences}}}}),
                  /*rank=*/2);
      return profile.phases.back().after.allocated_bytes;
    };
    return (held(4) - held(2)) / 2;
  };
  // Two layers. The input of the first is the stage's, which is held anyway, with a copy of the
  // gradient.
  constexpr int64_t kBf16 = 2, kSequence = 64, kHidden = 128;
  EXPECT_EQ(held_of_a_sequence("full") - held_of_a_sequence("none"),
            (2 + 1) * kBf16 * kSequence * kHidden);
}

}  // namespace
}  // namespace sim
