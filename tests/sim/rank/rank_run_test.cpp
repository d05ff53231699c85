#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "estimator/hardware/hardware.h"
#include "estimator/profile/run_observer.h"
#include "tests/sim/rank/executed_rank.h"

namespace sim {
namespace {

using estimator::CollectiveKind;
using estimator::Direction;
using estimator::GroupKind;
using estimator::Json;
using estimator::RankProfile;

int64_t calls(const RankProfile& profile,
              GroupKind group,
              CollectiveKind kind,
              Direction direction) {
  int64_t count = 0;
  for (const auto& record : profile.collectives) {
    if (record.call.group == group && record.call.kind == kind && record.direction == direction) {
      count += record.count;
    }
  }
  return count;
}

/// Calls over the tensor group that one more layer adds to a micro-batch.
int64_t calls_of_a_layer(Json changes, CollectiveKind kind, Direction direction) {
  changes["cluster"]["gpus_per_node"] = 2;
  changes["parallelism"]["tensor"] = 2;
  const auto with_layers = [&](int64_t layers) {
    changes["model"]["num_layers"] = layers;
    const RankProfile profile = execute(gpt_plan(changes));
    return calls(profile, GroupKind::kTensor, kind, direction) / profile.micro_batches.total;
  };
  return with_layers(3) - with_layers(2);
}

TEST(RankRun, HasThePhasesOfTwoIterations) {
  const RankProfile profile = execute(gpt_plan());
  std::vector<std::string> names;
  for (const auto& phase : profile.phases) names.push_back(phase.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"build_model",
                                      "build_optimizer",
                                      "iteration_0.forward_backward",
                                      "iteration_0.optimizer_step",
                                      "iteration_1.forward_backward",
                                      "iteration_1.optimizer_step"}));
  for (std::size_t i = 1; i < profile.phases.size(); ++i) {
    EXPECT_EQ(profile.phases[i].before.allocated_bytes,
              profile.phases[i - 1].after.allocated_bytes);
    EXPECT_GE(profile.phases[i].peak.allocated_bytes, profile.phases[i].before.allocated_bytes);
    EXPECT_GE(profile.phases[i].peak.reserved_bytes, profile.phases[i].peak.allocated_bytes);
  }
}

/// Of each record, how often the order has it.
std::vector<int64_t> times_in_order(const RankProfile& profile,
                                    estimator::OrderKind kind,
                                    std::size_t records) {
  std::vector<int64_t> times(records);
  const estimator::OrderEvents& events = profile.order->events;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] == static_cast<int64_t>(kind)) {
      ++times[static_cast<std::size_t>(events.item[i])];
    }
  }
  return times;
}

/// `times` in each of its micro-batches, or in the iteration where it happens once. The first
/// micro-batch has no loss and no gradients yet to which it could add its own.
template <class Record>
void expect_one_micro_batch(const Record& record, int64_t times, int64_t micro_batches) {
  const int64_t parts = estimator::is_per_micro_batch(record.direction) ? micro_batches : 1;
  const bool adds = times * (parts - 1) == record.executed_count;
  EXPECT_TRUE(times * parts == record.executed_count || adds)
      << times << " times: " << to_json(record);
}

void expect_order_of_one_micro_batch(const RankProfile& profile) {
  ASSERT_TRUE(profile.order);
  const int64_t executed = profile.micro_batches.executed;
  const auto operators =
      times_in_order(profile, estimator::OrderKind::kOperator, profile.operators.size());
  for (std::size_t i = 0; i < operators.size(); ++i) {
    expect_one_micro_batch(profile.operators[i], operators[i], executed);
  }
  const auto calls =
      times_in_order(profile, estimator::OrderKind::kCollective, profile.collectives.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    expect_one_micro_batch(profile.collectives[i], calls[i], executed);
  }
}

TEST(RankRun, TellsTheOrderOfOneMicroBatchOfAllThatItCounts) {
  expect_order_of_one_micro_batch(execute(gpt_plan()));
  expect_order_of_one_micro_batch(
      execute(gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                        {"parallelism", {{"pipeline", 2}, {"context", 2}}},
                        {"training", {{"attention", "fused"}}}})));
  // Of two units with one weight, the second adds its gradient in the first micro-batch, too.
  expect_order_of_one_micro_batch(
      execute(gpt_plan({{"model", {{"tie_embeddings", false}}},
                        {"parallelism", {{"zero_stage", 3}}},
                        {"training", {{"framework", "plain"}, {"dtype", "bf16"}}}})));
}

TEST(RankRun, CountsTheOperatorsThatTheHostBegins) {
  const RankProfile profile = execute(gpt_plan({{"training", {{"framework", "plain"}}}}));
  const auto& events = profile.order->events;
  int64_t works = 0;
  for (const int64_t kind : events.kind) {
    works += kind == static_cast<int64_t>(estimator::OrderKind::kOperator);
  }
  // Each of them, what calls it and what makes its memory, but no views.
  const int64_t begun =
      std::accumulate(events.operators.begin(), events.operators.end(), int64_t{0});
  EXPECT_GT(begun, 2 * works);
  EXPECT_LT(begun, 8 * works);
}

/// The streams on which collectives of the group run.
std::set<int64_t> streams_of(const RankProfile& profile, GroupKind group) {
  std::set<int64_t> streams;
  const estimator::OrderEvents& events = profile.order->events;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto item = static_cast<std::size_t>(events.item[i]);
    if (profile.collectives[item].call.group == group) streams.insert(events.stream[i]);
  }
  return streams;
}

// Embedding, each layer and head are units of FSDP2, whose hooks are Python's.
TEST(RankRun, TellsTheHooksOfEachUnitOfFsdp) {
  const estimator::Plan plan = gpt_plan(
      {{"model", {{"tie_embeddings", false}}},
       {"cluster", {{"gpus_per_node", 2}}},
       {"parallelism", {{"data", 2}, {"zero_stage", 3}}},
       {"training", {{"framework", "torchtitan"}, {"dtype", "bf16"}, {"global_batch_size", 8}}}});
  std::map<std::string, int64_t> hooks;
  const RankProfile profile = execute(plan);
  for (const estimator::TraceRange& range : profile.order->ranges) ++hooks[range.name];
  EXPECT_EQ(hooks["FSDP::pre_forward"], plan.model.num_layers + 2);
  EXPECT_EQ(hooks["FSDP::pre_backward"], plan.model.num_layers + 2);
}

TEST(RankRun, TellsWhichCallsHaveStreamsOfTheirOwn) {
  const auto run = [](const char* core) {
    return execute(gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                             {"parallelism", {{"tensor", 2}, {"context", 2}}},
                             {"training", {{"attention", "fused"}, {"megatron_core", core}}}}));
  };
  EXPECT_EQ(streams_of(run("0.0"), GroupKind::kTensor), (std::set<int64_t>{0}));
  const RankProfile profile = run("");
  const std::set<int64_t> of_tensor_ranks = streams_of(profile, GroupKind::kTensor);
  EXPECT_EQ(of_tensor_ranks.size(), 2U);  // some of the backward are beside its products
  EXPECT_EQ(of_tensor_ranks.count(0), 1U);
  const std::set<int64_t> ring = streams_of(profile, GroupKind::kContext);
  EXPECT_EQ(ring.size(), 2U);  // what is sent, and what is received
  EXPECT_EQ(ring.count(0), 0U);
}

RankProfile of_torchtitans_tensor_ranks(int64_t sequences,
                                        const char* recompute = "none",
                                        bool qk_norms = false) {
  return execute(
      gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                {"model",
                 {{"tie_embeddings", false},
                  {"activation", "swiglu"},
                  {"normalization", "RMSNorm"},
                  {"position_embedding", "rope"},
                  {"qk_layernorm", qk_norms},
                  {"add_bias_linear", false}}},
                {"parallelism", {{"tensor", 2}, {"sequence_parallel", true}, {"zero_stage", 3}}},
                {"training",
                 {{"framework", "torchtitan"},
                  {"dtype", "bf16"},
                  {"recompute", recompute},
                  {"micro_batch_size", sequences},
                  {"global_batch_size", 2 * sequences}}}}));
}

int64_t executed_over_tensor_ranks(const RankProfile& profile, CollectiveKind kind) {
  int64_t count = 0;
  for (const auto& record : profile.collectives) {
    const bool is_it = record.call.group == GroupKind::kTensor && record.call.kind == kind &&
                       estimator::is_per_micro_batch(record.direction);
    count += is_it ? record.executed_count : 0;
  }
  return count;
}

// Two bytes of each of 64 elements of a head, and of the 1024 of the hidden states; the final
// norm's come first. FSDP2 asks for gradients in the order of a unit's parameters, of which the
// norms of a layer are the last.
TEST(RankRun, OfTorchTitansTensorRanksSumsGradientsOfNormsInTheOrderOfParameters) {
  const RankProfile profile = of_torchtitans_tensor_ranks(1, "none", /*qk_norms=*/true);
  const estimator::OrderEvents& events = profile.order->events;
  std::vector<int64_t> bytes;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto& call = profile.collectives[static_cast<std::size_t>(events.item[i])].call;
    const bool is_of_norm = call.group == GroupKind::kTensor &&
                            call.kind == CollectiveKind::kAllReduce && call.dtype == "BFloat16";
    if (is_of_norm) bytes.push_back(call.bytes);
  }
  EXPECT_EQ(bytes, (std::vector<int64_t>{2048, 128, 128, 2048, 2048, 128, 128, 2048, 2048}));
}

int64_t executed_joins(const RankProfile& profile) {
  int64_t count = 0;
  for (const auto& record : profile.operators) {
    const bool is_it =
        record.name == "aten::cat" && estimator::is_per_micro_batch(record.direction);
    count += is_it ? record.executed_count : 0;
  }
  return count;
}

// DTensors' collectives run on NCCL's own stream, and know dim 0 alone, where the batch is: parts
// of a sequence are joined before each reduce-scatter, and after an all-gather of several
// sequences (torch/distributed/_functional_collectives.py).
TEST(RankRun, OfTorchTitansTensorRanksCallsBesideKernelsAndJoinsParts) {
  const RankProfile one = of_torchtitans_tensor_ranks(1), two = of_torchtitans_tensor_ranks(2);
  EXPECT_EQ(streams_of(one, GroupKind::kTensor).size(), 1U);
  EXPECT_EQ(streams_of(one, GroupKind::kTensor).count(0), 0U);
  const auto scattered = executed_over_tensor_ranks(one, CollectiveKind::kReduceScatter);
  EXPECT_GT(scattered, 0);
  EXPECT_EQ(executed_joins(one), scattered);
  EXPECT_EQ(executed_joins(two),
            executed_over_tensor_ranks(two, CollectiveKind::kReduceScatter) +
                executed_over_tensor_ranks(two, CollectiveKind::kAllGather));
}

/// Before each call of a micro-batch over the tensor ranks, since the last event.
std::vector<int64_t> operators_before_tensor_calls(const RankProfile& profile) {
  std::vector<int64_t> operators;
  const estimator::OrderEvents& events = profile.order->events;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto& record = profile.collectives[static_cast<std::size_t>(events.item[i])];
    if (record.call.group == GroupKind::kTensor &&
        estimator::is_per_micro_batch(record.direction)) {
      operators.push_back(events.operators[i]);
    }
  }
  return operators;
}

// _c10d_functional's operator, c10d's, _wrap_tensor_autograd and wait_tensor.
TEST(RankRun, OfTorchTitansTensorRanksDispatchesFourOperatorsForACall) {
  const std::vector<int64_t> operators =
      operators_before_tensor_calls(of_torchtitans_tensor_ranks(1));
  ASSERT_FALSE(operators.empty());
  EXPECT_GE(*std::min_element(operators.begin(), operators.end()), 4);
}

// A checkpoint of torch.utils.checkpoint recomputes when backward first needs what was not kept.
// The gather of a layer's gradient comes before, as the reduce-scatter at its end keeps nothing.
TEST(RankRun, OfTorchTitansRecomputedLayersGathersTheGradientFirst) {
  const RankProfile profile = of_torchtitans_tensor_ranks(1, "full");
  const estimator::OrderEvents& events = profile.order->events;
  const estimator::CollectiveRecord* before = nullptr;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    const auto& record = profile.collectives[static_cast<std::size_t>(events.item[i])];
    if (record.call.group != GroupKind::kTensor) continue;
    if (record.direction == Direction::kRecompute) break;
    before = &record;
  }
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before->direction, Direction::kBackward);
  EXPECT_EQ(before->call.kind, CollectiveKind::kAllGather);
}

int64_t operators_of_forward(const char* recompute) {
  const RankProfile profile = execute(gpt_plan(
      {{"training", {{"framework", "torchtitan"}, {"dtype", "bf16"}, {"recompute", recompute}}}}));
  const estimator::OrderEvents& events = profile.order->events;
  int64_t operators = 0;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    const bool is_forward = events.direction[i] == static_cast<int64_t>(Direction::kForward);
    operators += is_forward ? events.operators[i] : 0;
  }
  return operators;
}

// Both run the same operators forward, but under the policy of selective recompute Python
// dispatches each of them again.
TEST(RankRun, UnderSelectiveRecomputeByOperatorDispatchesEachTwice) {
  const int64_t once = operators_of_forward("full");
  EXPECT_GT(operators_of_forward("selective"), once + once / 5);
}

TEST(RankRun, TellsWhatIsAllocatedInAForwardAndABackward) {
  const RankProfile profile = execute(gpt_plan(Json::object()));
  const auto& memory = profile.order->memory;
  ASSERT_EQ(memory.size(), 2U);
  const auto [forward, backward] = std::pair(memory[0], memory[1]);
  EXPECT_TRUE(forward.is_forward);
  EXPECT_FALSE(backward.is_forward);
  EXPECT_NEAR(static_cast<double>(forward.end_bytes - forward.begin_bytes),
              static_cast<double>(*profile.micro_batches.activation_bytes),
              1 << 20);
  EXPECT_GE(backward.begin_bytes, forward.end_bytes);
  EXPECT_LT(backward.end_bytes, backward.begin_bytes);
  const auto& allocated = profile.order->events.allocated_bytes;
  EXPECT_LE(*std::max_element(allocated.begin(), allocated.end()), profile.peak.allocated_bytes);
  EXPECT_GT(*std::max_element(allocated.begin(), allocated.end()), forward.end_bytes);
}

/// Where the order has the calls of a direction.
struct Places {
  int64_t in_forward = 0;   ///< before its last event
  int64_t in_backward = 0;  ///< before its last event
  int64_t at_end = 0;
};

Places places_of(const RankProfile& profile, Direction direction) {
  const estimator::OrderEvents& events = profile.order->events;
  std::size_t last_forward = 0, last_backward = 0;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    const auto of = static_cast<Direction>(events.direction[i]);
    if (of == Direction::kForward) last_forward = i;
    if (of == Direction::kBackward) last_backward = i;
  }
  Places places;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    if (events.direction[i] != static_cast<int64_t>(direction)) continue;
    const auto item = static_cast<std::size_t>(events.item[i]);
    if (!estimator::is_of_replicas(profile.collectives[item].call.group)) continue;
    ++(i < last_forward    ? places.in_forward
       : i < last_backward ? places.in_backward
                           : places.at_end);
  }
  return places;
}

Json two_stages(const char* framework, bool overlap) {
  return {{"model", {{"tie_embeddings", false}}},
          {"cluster", {{"gpus_per_node", 4}}},
          {"parallelism",
           {{"pipeline", 2},
            {"zero_stage", 1},
            {"overlap_grad_reduce", overlap},
            {"overlap_param_gather", overlap},
            {"bucket_elements", 5'000'000}}},
          {"training", {{"framework", framework}, {"dtype", "bf16"}}}};
}

TEST(RankRun, HasBucketsWhereTheFirstForwardAndTheLastBackwardDoThem) {
  const RankProfile first = execute(gpt_plan(two_stages("megatron-lm", true)), 0);
  const Places reductions = places_of(first, Direction::kReduceGradients);
  EXPECT_GT(reductions.in_backward, 0);
  EXPECT_EQ(reductions.at_end, 1);  // the bucket that the end of the backward fills
  const Places gathers = places_of(first, Direction::kOptimizerStep);
  EXPECT_EQ(gathers.in_forward, reductions.in_backward + reductions.at_end);
  EXPECT_EQ(gathers.in_backward + gathers.at_end, 0);

  const RankProfile exposed = execute(gpt_plan(two_stages("megatron-lm", false)), 0);
  EXPECT_EQ(places_of(exposed, Direction::kReduceGradients).at_end, 1);
  EXPECT_EQ(places_of(exposed, Direction::kOptimizerStep).at_end, 1);
}

// Megatron-LM's later stages have one bucket, and reduce when they have sent their last gradients.
TEST(RankRun, OfALaterStageReducesInTheBubble) {
  const RankProfile last = execute(gpt_plan(two_stages("megatron-lm", true)), 3);
  EXPECT_EQ(places_of(last, Direction::kReduceGradients).in_backward, 0);
  EXPECT_EQ(places_of(last, Direction::kReduceGradients).at_end, 1);
  EXPECT_EQ(places_of(last, Direction::kOptimizerStep).in_forward, 1);
}

// grad_sync_func in forward_backward_pipelining_with_interleaving() of Megatron-LM: a chunk when
// its last backward has ended, and on each stage as many backwards later as there are stages before
// it.
TEST(RankRun, OfInterleavedStagesReducesAChunkAfterItsLastBackward) {
  Json changes = two_stages("megatron-lm", true);
  changes["model"]["num_layers"] = 4;
  changes["parallelism"]["virtual_stages"] = 2;
  const auto reductions = [&](int64_t rank) {
    return places_of(execute(gpt_plan(changes), rank), Direction::kReduceGradients);
  };
  EXPECT_EQ(reductions(0).in_backward, 1);  // the second chunk
  EXPECT_GT(reductions(0).at_end, 1);       // all buckets of the first one
  EXPECT_EQ(reductions(3).in_backward, 1);
  EXPECT_EQ(reductions(3).at_end, 1);
}

// Each asks for the parameters of one bucket ahead; interleaved stages ask for all at once.
TEST(RankRun, GathersOneBucketAheadOrAllTogether) {
  const auto before_work = [](const Json& changes) {
    const RankProfile profile = execute(gpt_plan(changes), 0);
    const estimator::OrderEvents& events = profile.order->events;
    int64_t gathers = 0;
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      const auto of = static_cast<Direction>(events.direction[i]);
      const bool is_call =
          events.kind[i] == static_cast<int64_t>(estimator::OrderKind::kCollective);
      const auto module = static_cast<std::size_t>(events.module[i]);
      if (profile.order->modules[module].starts_with("embedding")) break;
      gathers += is_call && of == Direction::kOptimizerStep;
    }
    return gathers;
  };
  Json changes = two_stages("megatron-lm", true);
  EXPECT_EQ(before_work(changes), 2);
  changes["model"]["num_layers"] = 4;
  changes["parallelism"]["virtual_stages"] = 2;
  EXPECT_GT(before_work(changes), 2);
}

/// Bytes of 16-bit parameters in calls of this kind, in their order.
std::vector<int64_t> in_order(const RankProfile& profile,
                              estimator::CollectiveKind kind,
                              Direction direction,
                              int64_t bytes_of_element) {
  const estimator::OrderEvents& events = profile.order->events;
  std::vector<int64_t> bytes;
  for (std::size_t i = 0; i < events.kind.size(); ++i) {
    if (events.kind[i] != static_cast<int64_t>(estimator::OrderKind::kCollective)) continue;
    if (events.direction[i] != static_cast<int64_t>(direction)) continue;
    const auto& call = profile.collectives[static_cast<std::size_t>(events.item[i])].call;
    if (call.kind == kind) bytes.push_back(call.bytes / bytes_of_element * 2);
  }
  return bytes;
}

// The head, whose norm is in the bucket that is reduced first, has the embedding's weight, and does
// not bring this bucket to the embedding (the hooks of DistributedDataParallel are those of each
// module, in megatron/core/distributed/distributed_data_parallel.py).
TEST(RankRun, OfATiedHeadGathersBucketsInTheOrderInWhichTheyAreNeeded) {
  Json changes = two_stages("megatron-lm", true);
  changes["model"] = {{"tie_embeddings", true}, {"num_layers", 3}, {"vocab_size", 4096}};
  changes["parallelism"]["pipeline"] = 1;
  const RankProfile profile = execute(gpt_plan(changes), 0);
  std::vector<int64_t> reduced = in_order(profile,
                                          estimator::CollectiveKind::kReduceScatter,
                                          Direction::kReduceGradients,
                                          sizeof(float));
  const std::vector<int64_t> gathered =
      in_order(profile, estimator::CollectiveKind::kAllGather, Direction::kOptimizerStep, 2);
  EXPECT_GT(gathered.size(), 4u);
  std::reverse(reduced.begin(), reduced.end());
  EXPECT_EQ(gathered, reduced);
}

// disable_bucketing and all_dense_model_chunks in megatron/core: one bucket for each chunk, and an
// update of the first chunk before that of the second.
TEST(RankRun, UpdatesTheChunkByItselfThatIsGatheredBesideTheUpdates) {
  const auto run = [](bool with_step) {
    Json changes = two_stages("megatron-lm", true);
    changes["model"]["num_layers"] = 4;
    changes["parallelism"]["virtual_stages"] = 2;
    changes["parallelism"]["overlap_param_gather_with_optimizer_step"] = with_step;
    return execute(gpt_plan(changes), 0);
  };
  const auto updates_of = [](const RankProfile& profile, int64_t chunk) {
    int64_t count = 0;
    for (const estimator::OperatorRecord& record : profile.operators) {
      const bool is_update = record.name.find("_fused_adam") != std::string::npos;
      count += is_update && record.chunk == chunk ? record.count : 0;
    }
    return count;
  };
  const RankProfile usual = run(false), with_step = run(true);
  EXPECT_EQ(updates_of(usual, estimator::kNoChunk), 1);
  EXPECT_EQ(updates_of(with_step, estimator::kNoChunk), 0);
  EXPECT_EQ(updates_of(with_step, 0), 1);
  EXPECT_EQ(updates_of(with_step, 1), 1);
  EXPECT_GT(places_of(usual, Direction::kOptimizerStep).in_forward, 2);
  EXPECT_EQ(places_of(with_step, Direction::kOptimizerStep).in_forward, 2);
}

TEST(RankRun, SaysWhichDeviceItPlayed) {
  const RankProfile profile = execute(gpt_plan());
  EXPECT_EQ(profile.device.gpu, "a100-sxm-80");
  EXPECT_EQ(profile.device.name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(profile.device.total_bytes, estimator::find_gpu("a100")->memory_bytes);
  EXPECT_EQ(profile.device.allocator, "expandable_segments:True");
  EXPECT_EQ(profile.tool.torch, "2.11.0");
}

TEST(RankRun, TwiceGivesTheSameProfile) {
  const auto strip_times = [](RankProfile profile) {
    for (auto& phase : profile.phases) phase.seconds = 0;
    return estimator::to_json(profile).dump();
  };
  EXPECT_EQ(strip_times(execute(gpt_plan())), strip_times(execute(gpt_plan())));
}

TEST(RankRun, OfAnAttentionLayerReducesTwiceForwardAndTwiceBackward) {
  EXPECT_EQ(calls_of_a_layer({}, CollectiveKind::kAllReduce, Direction::kForward), 2);
  EXPECT_EQ(calls_of_a_layer({}, CollectiveKind::kAllReduce, Direction::kBackward), 2);
}

TEST(RankRun, UnderSequenceParallelismGathersAndScattersInstead) {
  const Json sp = {{"parallelism", {{"sequence_parallel", true}}}};
  EXPECT_EQ(calls_of_a_layer(sp, CollectiveKind::kAllReduce, Direction::kForward), 0);
  EXPECT_EQ(calls_of_a_layer(sp, CollectiveKind::kAllGather, Direction::kForward), 2);
  EXPECT_EQ(calls_of_a_layer(sp, CollectiveKind::kReduceScatter, Direction::kForward), 2);
  // Backward: the two row-parallel layers gather the gradient, the two column-parallel ones gather
  // their input again and scatter the input's gradient.
  EXPECT_EQ(calls_of_a_layer(sp, CollectiveKind::kAllGather, Direction::kBackward), 4);
  EXPECT_EQ(calls_of_a_layer(sp, CollectiveKind::kReduceScatter, Direction::kBackward), 2);
}

/// Two layers, 4 micro-batches.
RankProfile of_four_context_ranks(const char* comm) {
  return execute(gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                           {"parallelism", {{"context", 4}, {"context_comm", comm}}},
                           {"training", {{"attention", "fused"}}}}));
}

// Forward: the keys and values of three others. Backward: the same, and the gradients of all four
// on their way home; the first message has no gradient yet, the last one nothing else.
TEST(RankRun, OfARingPassesOnKeysAndValuesAndTheirGradients) {
  const RankProfile profile = of_four_context_ranks("p2p");
  const GroupKind ring = GroupKind::kContext;
  for (const CollectiveKind kind : {CollectiveKind::kSend, CollectiveKind::kRecv}) {
    EXPECT_EQ(calls(profile, ring, kind, Direction::kForward), 2 * 4 * 3);
    EXPECT_EQ(calls(profile, ring, kind, Direction::kBackward), 2 * 4 * 4);
  }
  const int64_t keys_and_values = 2 * (512 / 4) * 4 * 1024 * 2;
  std::multiset<int64_t> bytes;
  for (const auto& record : profile.collectives) {
    if (record.call.group != ring) continue;
    const bool forward = record.direction == Direction::kForward;
    const bool to_next = record.call.kind == CollectiveKind::kSend ? forward : !forward;
    EXPECT_EQ(record.call.peer, to_next ? 1 : 3);
    if (!forward) bytes.insert(record.call.bytes / keys_and_values);
  }
  EXPECT_EQ(bytes, (std::multiset<int64_t>{1, 1, 2, 2}));
}

// Forward: query, key and value to heads, the output back. Backward: the other way round.
TEST(RankRun, ThatExchangesHeadsDoesSoFourTimesEachWay) {
  const RankProfile profile = of_four_context_ranks("a2a");
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_EQ(calls(profile, GroupKind::kContext, CollectiveKind::kAllToAll, direction), 2 * 4 * 4);
  }
}

TEST(RankRun, OfContextRanksSumsGradientsOverThem) {
  const RankProfile profile = of_four_context_ranks("p2p");
  EXPECT_EQ(calls(profile,
                  GroupKind::kDataContext,
                  CollectiveKind::kAllReduce,
                  Direction::kReduceGradients),
            1);
  for (const auto& record : profile.collectives) {
    if (record.call.group != GroupKind::kDataContext) continue;
    EXPECT_EQ(record.call.group_size, 4);
  }
}

TEST(RankRun, OfAMiddleStageReceivesAndSendsOnceEachWay) {
  const RankProfile profile = execute(gpt_plan({{"model", {{"num_layers", 4}}},
                                                {"cluster", {{"gpus_per_node", 4}}},
                                                {"parallelism", {{"pipeline", 4}}},
                                                {"training", {{"global_batch_size", 32}}}}),
                                      1);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_EQ(calls(profile, GroupKind::kPipeline, CollectiveKind::kRecv, direction), 8);
    EXPECT_EQ(calls(profile, GroupKind::kPipeline, CollectiveKind::kSend, direction), 8);
  }
}

// 8 micro-batches through 2 chunks of 4 stages: pieces 0 and 4 are on the first stage, 3 and 7 on
// the last one.
TEST(RankRun, OfInterleavedStagesTheLastSendsToTheFirst) {
  const auto plan = gpt_plan({{"model", {{"num_layers", 8}}},
                              {"cluster", {{"gpus_per_node", 4}}},
                              {"parallelism", {{"pipeline", 4}, {"virtual_stages", 2}}},
                              {"training", {{"global_batch_size", 32}}}});
  const auto sends_to = [](const RankProfile& profile, int64_t stage, Direction direction) {
    int64_t count = 0;
    for (const auto& record : profile.collectives) {
      const bool is_send = record.call.kind == CollectiveKind::kSend;
      if (is_send && record.call.peer == stage && record.direction == direction) {
        count += record.count;
      }
    }
    return count;
  };
  const RankProfile first = execute(plan, 0), last = execute(plan, 3);
  EXPECT_EQ(sends_to(first, 1, Direction::kForward), 16);
  EXPECT_EQ(sends_to(first, 3, Direction::kBackward), 8);
  EXPECT_EQ(sends_to(last, 0, Direction::kForward), 8);
  EXPECT_EQ(sends_to(last, 2, Direction::kBackward), 16);
}

TEST(RankRun, AnInterleavedShardIsThatOfTheSameLayers) {
  Json changes = {{"model", {{"num_layers", 8}}},
                  {"cluster", {{"gpus_per_node", 4}}},
                  {"parallelism", {{"pipeline", 4}}},
                  {"training", {{"global_batch_size", 32}}}};
  const RankProfile plain = execute(gpt_plan(changes), 1);
  changes["parallelism"]["virtual_stages"] = 2;
  const RankProfile interleaved = execute(gpt_plan(changes), 1);
  EXPECT_EQ(interleaved.parameters.count, plain.parameters.count);
  const auto names = [](const RankProfile& profile) {
    std::set<std::string> layers;
    for (const auto& parameter : profile.parameters.tensors) {
      layers.insert(parameter.name.substr(0, sizeof("layers.0") - 1));
    }
    return layers;
  };
  EXPECT_EQ(names(plain), (std::set<std::string>{"layers.2", "layers.3"}));
  EXPECT_EQ(names(interleaved), (std::set<std::string>{"layers.1", "layers.5"}));
  const auto flops = [](const RankProfile& profile) {
    double sum = 0;
    for (const auto& record : profile.operators) {
      sum += record.flops * static_cast<double>(record.count);
    }
    return sum;
  };
  EXPECT_EQ(flops(interleaved), flops(plain));
}

TEST(RankRun, ReducesEachGradientOnceOverTheDataRanks) {
  const auto bytes_over_data = [](const Json& parallelism, CollectiveKind kind) {
    const RankProfile profile =
        execute(gpt_plan({{"cluster", {{"gpus_per_node", 4}}}, {"parallelism", parallelism}}));
    int64_t bytes = 0;
    for (const auto& record : profile.collectives) {
      if (record.call.group == GroupKind::kDataContext && record.call.kind == kind) {
        bytes += record.call.bytes * record.count;
      }
    }
    return std::pair{bytes, profile.parameters.count};
  };
  const auto [reduced, parameters] = bytes_over_data({}, CollectiveKind::kAllReduce);
  EXPECT_EQ(reduced, 4 * parameters);
  EXPECT_EQ(bytes_over_data({{"zero_stage", 1}}, CollectiveKind::kReduceScatter).first,
            4 * parameters);
  EXPECT_EQ(bytes_over_data({{"zero_stage", 1}}, CollectiveKind::kAllGather).first, 2 * parameters);
}

// Each of 2 instances reduces all gradients over its 2 ranks, and then each rank its half of them
// over the instances.
TEST(RankRun, OfTwoInstancesReducesShardsBetweenThem) {
  const RankProfile profile = execute(
      gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                {"parallelism", {{"zero_stage", 1}, {"num_distributed_optimizer_instances", 2}}}}));
  const auto bytes = [&](GroupKind group, CollectiveKind kind) {
    int64_t sum = 0;
    for (const auto& record : profile.collectives) {
      if (record.call.group != group || record.call.kind != kind) continue;
      EXPECT_EQ(record.call.group_size, 2);
      sum += record.call.bytes * record.count;
    }
    return sum;
  };
  const int64_t parameters = profile.parameters.count;
  EXPECT_EQ(bytes(GroupKind::kDataContext, CollectiveKind::kReduceScatter), 4 * parameters);
  EXPECT_EQ(bytes(GroupKind::kInstances, CollectiveKind::kAllReduce), 4 * parameters / 2);
  EXPECT_EQ(bytes(GroupKind::kDataContext, CollectiveKind::kAllGather), 2 * parameters);
}

// Over 4 ranks, by falling size: four MLP weights of 4 h^2 (one each), two of 3 h^2 (ranks 0 and
// 1), three of h^2 (ranks 2, 3, 2), the positions of h^2 / 2 (rank 3), and 28 h of biases and
// norms.
TEST(RankRun, OfTheInternevoFrameworkBroadcastsTheParametersOfEachOwner) {
  const RankProfile profile = execute(gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                                                {"parallelism", {{"zero_stage", 1}}},
                                                {"training", {{"framework", "internevo"}}}}));
  constexpr int64_t h = 1024;
  std::map<int64_t, int64_t> elements;  // by owner
  for (const auto& record : profile.collectives) {
    const bool is_reduction = record.call.kind == CollectiveKind::kAllReduce;
    EXPECT_TRUE(is_reduction || record.call.kind == CollectiveKind::kBroadcast);
    EXPECT_EQ(record.direction,
              is_reduction ? Direction::kReduceGradients : Direction::kOptimizerStep);
    EXPECT_EQ(record.count, 1);
    if (is_reduction) {
      EXPECT_EQ(record.call.bytes, 2 * profile.parameters.count);
    } else {
      elements[record.call.peer] = record.call.bytes / 2;
    }
  }
  EXPECT_EQ(
      elements,
      (std::map<int64_t, int64_t>{
          {0, 7 * h * h}, {1, 7 * h * h}, {2, 6 * h * h}, {3, 5 * h * h + h * h / 2 + 28 * h}}));
  EXPECT_EQ(profile.model_state->gradient_bytes, 2 * profile.parameters.count);
  EXPECT_EQ(profile.model_state->master_weight_bytes, 4 * 7 * h * h);
  EXPECT_EQ(profile.model_state->optimizer_state_bytes, 8 * 7 * h * h);
}

TEST(RankRun, CountsAnOverlappedReductionOnceForTheIteration) {
  const RankProfile profile = execute(gpt_plan({{"cluster", {{"gpus_per_node", 4}}},
                                                {"parallelism", {{"overlap_grad_reduce", true}}},
                                                {"training", {{"global_batch_size", 64}}}}));
  EXPECT_EQ(profile.micro_batches.total, 4);
  EXPECT_EQ(profile.micro_batches.executed, 3);
  for (const auto& record : profile.collectives) {
    EXPECT_EQ(record.direction, Direction::kReduceGradients);
    EXPECT_EQ(record.count, record.executed_count);
  }
  EXPECT_EQ(calls(profile,
                  GroupKind::kDataContext,
                  CollectiveKind::kAllReduce,
                  Direction::kReduceGradients),
            1);
}

// LanguageModelEmbedding.forward() of Megatron-LM; others add the rows that they have.
TEST(RankRun, LooksUpThePlaceOfEachTokenUnderMegatron) {
  const auto look_ups = [](const char* framework, const char* positions) {
    const RankProfile profile =
        execute(gpt_plan({{"model", {{"position_embedding", positions}}},
                          {"training", {{"framework", framework}, {"dtype", "bf16"}}}}));
    int64_t count = 0;
    for (const auto& record : profile.operators) {
      const bool is_forward = record.direction == Direction::kForward;
      const bool looks_up = record.name.find("index_select") != std::string::npos;
      if (is_forward && looks_up) count += record.count;
    }
    return count;
  };
  const int64_t of_words = look_ups("megatron-lm", "rope");
  EXPECT_GT(of_words, 0);
  EXPECT_EQ(look_ups("megatron-lm", "learned_absolute"), 2 * of_words);
  EXPECT_EQ(look_ups("plain", "learned_absolute"), of_words);
}

TEST(RankRun, CountsTheMatrixProductsOfItsModel) {
  // Forward: per layer 24 b s h^2 and the attention scores 4 b s^2 h; logits 2 b s h V. Backward
  // twice.
  const RankProfile profile = execute(gpt_plan());
  constexpr double s = 512, b = 16, h = 1024, vocabulary = 1024, layers = 2;
  double products = 0;
  for (const auto& record : profile.operators) {
    const std::string& name = record.name;
    if (name.find("mm") != std::string::npos) {
      products += record.flops * static_cast<double>(record.count);
    }
  }
  const double forward =
      layers * (24 * b * s * h * h + 4 * b * s * s * h) + 2 * b * s * h * vocabulary;
  EXPECT_NEAR(products, 3 * forward, 1e-9 * forward);
}

TEST(RankRun, RecordsTheKernelsOfMegatronLmInPlaceOfPytorchsOperators) {
  const estimator::Plan plan = gpt_plan({{"model",
                                          {{"activation", "swiglu"},
                                           {"position_embedding", "rope"},
                                           {"add_bias_linear", true},
                                           {"hidden_dropout", 0.1}}}});
  const RankProfile profile = execute(plan);
  std::map<std::string, double> bytes;  // of the largest call
  for (const auto& record : profile.operators) {
    bytes[record.name] = std::max(bytes[record.name], record.bytes);
  }
  const auto rows = static_cast<double>(plan.sequence_length() * plan.training.micro_batch_size);
  const double hidden = 2 * rows * static_cast<double>(plan.model.hidden_size);
  const double half = 2 * rows * static_cast<double>(plan.model.ffn_hidden_size);
  EXPECT_EQ(bytes.at("megatron::gated_activation"), 3 * half);
  EXPECT_EQ(bytes.at("megatron::gated_activation_backward"), 5 * half);
  const double bias = 2 * static_cast<double>(plan.model.hidden_size);
  EXPECT_EQ(bytes.at("megatron::bias_dropout_add"), 3.5 * hidden + bias);
  EXPECT_NEAR(bytes.at("fused_rope") / (2 * hidden), 1, 0.2) << "and the tables";
  for (const char* part : {"aten::silu", "aten::addcmul_", "aten::silu_backward"}) {
    EXPECT_EQ(bytes.count(part), 0u) << part;
  }
}

TEST(RankRun, ThatDoesNotFitRunsAgainWithoutTheLimit) {
  const auto plan =
      gpt_plan({{"model", {{"num_layers", 24}, {"hidden_size", 8192}, {"num_attention_heads", 64}}},
                {"training", {{"attention", "flash"}}}});
  const RankProfile profile = execute(plan);
  EXPECT_TRUE(profile.limit_lifted);
  ASSERT_TRUE(profile.out_of_memory.has_value());
  EXPECT_NE(profile.out_of_memory->message.find("out of memory"), std::string::npos);
  EXPECT_GT(profile.peak.allocated_bytes, estimator::find_gpu("a100")->memory_bytes);
}

TEST(RankRun, ThatRunsOutOfMemorySaysWhereAndWhatWasAsked) {
  // 2,048 samples: the attention weights of one layer, 16 x 2,048 x 512 x 512 x 2 bytes, are 16 GiB
  // and several of them live at once.
  const auto plan =
      gpt_plan({{"training", {{"micro_batch_size", 2048}, {"global_batch_size", 2048}}}});
  const RankProfile profile = execute(plan);
  ASSERT_TRUE(profile.out_of_memory.has_value());
  const estimator::OutOfMemoryRecord& record = *profile.out_of_memory;
  EXPECT_EQ(record.phase, "iteration_0.forward_backward");
  EXPECT_NE(record.module.find("layers."), std::string::npos) << record.module;
  EXPECT_NE(record.operator_name.find("::"), std::string::npos) << record.operator_name;
  EXPECT_GT(record.requested_bytes, record.free_bytes);
}

TEST(RankRun, OnAGpuThatTorchHasNoKernelsForSaysSo) {
  const auto plan = gpt_plan({{"cluster", {{"gpu", "v100"}}}});
  try {
    execute(plan);
    FAIL() << "a V100 has no kernels in torch 2.11";
  } catch (const estimator::UserError& error) {
    EXPECT_EQ(error.exit_code(), estimator::ExitCode::kMachineLacks);
    EXPECT_NE(std::string(error.what()).find("no kernel image"), std::string::npos);
  }
}

TEST(RankRun, OfTheLlamaFrameworkKeepsLessThanThePlainOne) {
  const auto activations = [](const char* framework) {
    return execute(gpt_plan({{"model",
                              {{"activation", "swiglu"},
                               {"normalization", "RMSNorm"},
                               {"position_embedding", "rope"},
                               {"add_bias_linear", false},
                               {"hidden_dropout", 0}}},
                             {"training", {{"framework", framework}, {"attention", "flash"}}}}))
        .micro_batches.activation_bytes.value();
  };
  EXPECT_LT(activations("megatron-lm"), activations("plain"));
}

// What backward leaves free is given back before the optimizer's step, so that its temporaries are
// in new segments, and after it. The next iteration asks for all of it again.
TEST(RankRun, GivesBackFreeMemoryInEachIteration) {
  const auto reserved = [](int64_t level) {
    const auto profile = execute(
        gpt_plan({{"training", {{"dtype", "bf16"}, {"empty_unused_memory_level", level}}}}));
    return std::pair(profile.phases.back().after.reserved_bytes,
                     profile.phases.back().after.allocated_bytes);
  };
  const auto [kept, used] = reserved(0);
  const auto [before_step, used_before] = reserved(1);
  const auto [after_step, used_after] = reserved(2);
  EXPECT_EQ(used_before, used);
  EXPECT_EQ(used_after, used);
  EXPECT_LT(before_step, kept);
  EXPECT_LE(after_step, before_step);
}

// Megatron-LM asks twice of each loss, and of the norm of each bucket of gradients: here one.
TEST(RankRun, ReadsWhetherLossesAndGradientsAreNumbers) {
  const auto values_read = [](const Json& training) {
    int64_t count = 0;
    for (const auto& record : execute(gpt_plan({{"training", training}})).operators) {
      if (record.name == "aten::_local_scalar_dense") count += record.count;
    }
    return count;
  };
  constexpr int64_t kMicroBatches = 4, kBuckets = 1;
  EXPECT_EQ(values_read({{"dtype", "bf16"}}), 2 * (kMicroBatches + kBuckets));
  EXPECT_EQ(values_read({{"dtype", "fp16"}}), 0);
  EXPECT_EQ(values_read({{"dtype", "bf16"}, {"check_for_nan_in_loss_and_grad", false}}), 0);
  EXPECT_EQ(values_read({{"dtype", "bf16"}, {"framework", "plain"}}), 0);
}

}  // namespace
}  // namespace sim
