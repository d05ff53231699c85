#include "estimator/step/stage_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "estimator/base/units.h"
#include "estimator/communication/communication_time.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

StageTime time_of(const Plan& plan, const RankProfile& profile) {
  return stage_time(profile,
                    {.plan = plan,
                     .compute = {.gpu = gpu_of(plan.cluster)},
                     .layout = ParallelLayout(plan.parallelism),
                     .fabric = fabric_of(plan)});
}

CollectiveCall call_of(CollectiveKind kind, GroupKind group, int64_t group_size, int64_t bytes) {
  CollectiveCall call;
  call.kind = kind;
  call.group = group;
  call.group_size = group_size;
  call.bytes = bytes;
  return call;
}

double seconds_of(const Plan& plan, const CollectiveCall& call) {
  return collective_seconds(
      call, ParallelLayout(plan.parallelism).group(call.group, 0), fabric_of(plan));
}

TEST(StageTime, DividesRecordsByThePlansMicroBatches) {
  const Plan plan = pipeline_plan();  // 8 micro-batches
  const StageTime time = time_of(plan, profile_of(plan, 0, 1e-3, 2e-3));
  EXPECT_NEAR(time.forward().compute_seconds, 1e-3, 1e-12);
  EXPECT_NEAR(time.backward().compute_seconds, 2e-3, 1e-12);
}

TEST(StageTime, CountsRecomputeAsBackwardAndTheOptimizerOnce) {
  const Plan plan = pipeline_plan();
  RankProfile profile = profile_of(plan, 0, 1e-3, 2e-3);
  profile.operators.push_back(kernels(Direction::kRecompute, 8 * 1e-3));
  profile.operators.push_back(kernels(Direction::kOptimizerStep, 5e-3));
  profile.operators.push_back(kernels(Direction::kReduceGradients, 1e-3));
  const StageTime time = time_of(plan, profile);
  EXPECT_NEAR(time.backward().compute_seconds, 3e-3, 1e-12);
  EXPECT_NEAR(time.step_end.compute_seconds, 6e-3, 1e-12);
}

OperatorRecord empty_kernels(int64_t count) {
  OperatorRecord record = kernels(Direction::kForward, 0);
  record.count = count;  // 4 us each on the GPU, 16.9 us on the host
  return record;
}

TEST(StageTime, IsTheHostsWhereTheHostIsSlowerThanTheGpu) {
  const Plan plan = small_plan();  // one micro-batch
  RankProfile profile = profile_of(plan, 0, 0, 0);
  profile.operators = {kernels(Direction::kForward, 10e-3)};
  EXPECT_NEAR(time_of(plan, profile).forward().compute_seconds, 10e-3, 1e-9);
  profile.operators = {empty_kernels(1000)};
  EXPECT_NEAR(time_of(plan, profile).forward().compute_seconds, 16.9e-3, 1e-9);
  profile.operators = {kernels(Direction::kForward, 10e-3), empty_kernels(100)};
  EXPECT_NEAR(time_of(plan, profile).forward().compute_seconds, 10.4e-3, 1e-9);
}

// 2.8 us of the host for each operator or node, whether it asks for work or not (launch.json).
TEST(StageTime, CountsTheOperatorsThatTheHostBegins) {
  const Plan plan = small_plan();
  RankProfile profile = profile_of(plan, 0, 0, 0);
  profile.operators = {kernels(Direction::kForward, 0), kernels(Direction::kOptimizerStep, 0)};
  const auto time = [&](int64_t operators) {
    StepOrder order{.modules = {""}, .events = {}};
    for (int64_t item = 0; item < 2; ++item) {
      const Direction direction = profile.operators[static_cast<std::size_t>(item)].direction;
      order.events.add({.item = item, .direction = direction, .operators = operators});
    }
    profile.order = std::move(order);
    return time_of(plan, profile);
  };
  const double added = 1000 * 2.8e-6;
  EXPECT_NEAR(time(1000).forward().compute_seconds, 16.9e-6 + added, 1e-9);
  EXPECT_NEAR(time(1000).step_end.compute_seconds, time(0).step_end.compute_seconds + added, 1e-9);
}

// In torch of 2021 the backward of a small LayerNorm took 77 us of the host, now 36 (launch.json).
TEST(StageTime, TakesTheHostOfTheFrameworksTorch) {
  const Plan plan = small_plan({{"training", {{"framework", "megatron-deepspeed"}}}});
  RankProfile profile = profile_of(plan, 0, 0, 0);
  profile.operators = {empty_kernels(1000)};
  EXPECT_NEAR(time_of(plan, profile).forward().compute_seconds, 16.9e-3 * 77 / 36, 1e-9);
}

// 16.9 us of the host for a kernel, and 0.9 ms of Python for fully_shard's hooks of a forward
// (launch.json).
TEST(StageTime, CountsTheRangesOfPythonThatHaveAPrice) {
  const Plan plan = small_plan();
  RankProfile profile = profile_of(plan, 0, 0, 0);
  profile.operators = {kernels(Direction::kForward, 0)};
  StepOrder order{.modules = {""}, .events = {}};
  order.events.add({.direction = Direction::kForward});
  order.ranges = {{.event = 0, .name = "FSDP::pre_forward"}, {.event = 0, .name = "unknown"}};
  profile.order = std::move(order);
  EXPECT_NEAR(time_of(plan, profile).forward().compute_seconds, 16.9e-6 + 0.9e-3, 1e-9);
}

// 10 us until the host knows, 16.9 until its next call has come (launch.json).
TEST(StageTime, IsIdleUntilTheHostThatReadAValueCallsAgain) {
  const auto forward = [](const Plan& plan, const char* name) {
    RankProfile profile = profile_of(plan, 0, 0, 0);
    profile.operators = {kernels(Direction::kForward, 10e-3), empty_kernels(2)};
    profile.operators.back().name = name;
    return time_of(plan, profile).forward().compute_seconds;
  };
  const auto added = [&](const Plan& plan) {
    return forward(plan, "aten::_local_scalar_dense") - forward(plan, "aten::add");
  };
  EXPECT_NEAR(added(small_plan()), 2 * 26.9e-6, 1e-9);
  EXPECT_EQ(added(small_plan({{"time", {{"launch_blocking", true}}}})), 0);
}

TEST(StageTime, LetsTheHostWorkOnWhileTheGpuCommunicates) {
  const Plan plan =
      small_plan({{"parallelism", {{"tensor", 8}}}, {"training", {{"global_batch_size", 1}}}});
  const CollectiveCall call = call_of(CollectiveKind::kAllReduce, GroupKind::kTensor, 8, 64 * kMiB);
  RankProfile profile = profile_of(plan, 0, 0, 0);
  profile.operators = {empty_kernels(1000)};
  profile.collectives = {collectives(Direction::kForward, call, 10)};
  const PartTime forward = time_of(plan, profile).forward();
  ASSERT_LT(10 * seconds_of(plan, call), 12e-3);
  EXPECT_NEAR(forward.communication_seconds.tensor, 10 * seconds_of(plan, call), 1e-12);
  EXPECT_NEAR(forward.total_seconds(), 1010 * 16.9e-6, 1e-9);  // a collective is issued as well
}

constexpr const char* kAttention = "layers.*.self_attention";

/// Of an MLP, or of attention: one matrix product, and one call of its tensor ranks.
struct MlpCall {
  Direction direction = Direction::kForward;
  CollectiveKind kind = CollectiveKind::kAllGather;
  std::string module = "layers.*.mlp";
  bool overlap = true;
  bool overlaps_qkv = true;
  int64_t lora_rank = 0;
  double product_flops = 2.0 * 8192 * 8192 * 8192;
  int64_t bytes = 64 * kMiB;
};

OperatorRecord product_of(const MlpCall& what) {
  OperatorRecord product = kernels(what.direction, 0);
  product.name = "aten::mm";
  product.dtype = "BFloat16";
  product.module_kind = what.module == kAttention ? "attention" : "mlp";
  product.shapes = {{8192, 8192}, {8192, 8192}};
  product.flops = what.product_flops;
  product.count = 1;
  return product;
}

/// Seconds that the call of `what` adds to its part of the step, and those that it takes alone.
std::pair<double, double> added_and_alone(const MlpCall& what) {
  const Plan plan = small_plan(
      {{"parallelism",
        {{"tensor", 8},
         {"sequence_parallel", true},
         {"tp_comm_overlap", what.overlap},
         {"tp_comm_overlap_disable_qkv", !what.overlaps_qkv}}},
       {"training",
        {{"global_batch_size", 1}, {"framework", "megatron-lm"}, {"lora_rank", what.lora_rank}}}});
  const CollectiveCall call = call_of(what.kind, GroupKind::kTensor, 8, what.bytes);
  CollectiveRecord record = collectives(what.direction, call, 1);
  record.module = what.module;
  RankProfile profile = profile_of(plan, 0, 0, 0);
  profile.operators = {product_of(what)};
  if (what.lora_rank > 0) {
    OperatorRecord of_adapter = product_of(what);
    of_adapter.shapes = {{8192, 8192}, {8192, what.lora_rank}};
    of_adapter.flops = 1;
    profile.operators.push_back(of_adapter);
  }
  profile.collectives = {record};
  const StageTime time = time_of(plan, profile);
  const PartTime part = what.direction == Direction::kBackward ? time.backward() : time.forward();
  return {part.communication_seconds.tensor, seconds_of(plan, call)};
}

double share_added(const MlpCall& what) {
  const auto [added, alone] = added_and_alone(what);
  return added / alone;
}

// TransformerEngine's defaults: copy engines do a forward all-gather; other calls take 16 of the
// 132 multiprocessors, on which the product beside them does not run. One chunk of eight is alone.
TEST(StageTime, HidesTheTensorRanksCallsBesideProductsInUserBuffers) {
  constexpr auto kGather = CollectiveKind::kAllGather, kScatter = CollectiveKind::kReduceScatter;
  const auto added_to_product = [](const MlpCall& what) {
    const auto [added, alone] = added_and_alone(what);
    return added - alone / 8;
  };
  const double product = operator_seconds(product_of({}), {.gpu = *find_gpu("h100-sxm")});
  const double half = product * (132.0 / 124 - 1), all = product * (132.0 / 116 - 1);
  EXPECT_NEAR(added_to_product({.kind = kGather}), 0, 1e-12);
  EXPECT_NEAR(added_to_product({.kind = kScatter}), all, 1e-12);
  EXPECT_NEAR(added_to_product({.direction = Direction::kBackward, .kind = kGather}), half, 1e-12);
  EXPECT_NEAR(added_to_product({.direction = Direction::kBackward, .kind = kScatter}), all, 1e-12);
}

TEST(StageTime, HidesNoCallWithoutUserBuffersOrOutsideOfLayers) {
  EXPECT_NEAR(share_added({.overlap = false}), 1, 1e-9);
  EXPECT_NEAR(share_added({.module = "output_layer"}), 1, 1e-9);
  EXPECT_DOUBLE_EQ(share_added({.kind = CollectiveKind::kAllReduce}), 1);
}

// Queries, keys and values are made of a gathered input, whose gradient is scattered beside the
// gradient of the weight, which a frozen one has not.
TEST(StageTime, HidesNoCallOfAProductThatIsTakenOut) {
  constexpr auto kGather = CollectiveKind::kAllGather, kScatter = CollectiveKind::kReduceScatter;
  const auto expect = [&](Direction direction, CollectiveKind kind, int64_t rank, bool is_out) {
    MlpCall call{.direction = direction, .kind = kind, .module = kAttention, .lora_rank = rank};
    const double hidden = share_added(call);
    EXPECT_LT(hidden, 0.95);
    call.overlaps_qkv = false;
    EXPECT_NEAR(share_added(call), is_out ? 1 : hidden, 1e-9);
  };
  for (const int64_t rank : {0, 16}) {
    expect(Direction::kForward, kGather, rank, true);
    expect(Direction::kForward, kScatter, rank, false);
    expect(Direction::kBackward, kGather, rank, false);
    expect(Direction::kBackward, kScatter, rank, rank > 0);
  }
}

TEST(StageTime, HidesNoCallBesideProductsOfAdapters) {
  EXPECT_DOUBLE_EQ(share_added({.lora_rank = 16}), share_added({}));
}

TEST(StageTime, ExposesWhatIsLongerThanTheProductBesideIt) {
  const MlpCall small_product{.product_flops = 1e9};
  EXPECT_GT(share_added(small_product), 0.9);
  EXPECT_LT(share_added(small_product), 1);
}

TEST(StageTime, AddsTheHostsTimeAndTheWaitsUnderLaunchBlocking) {
  const Plan plan = small_plan({{"time", {{"launch_blocking", true}}}});
  RankProfile profile = profile_of(plan, 0, 0, 0);
  profile.operators = {kernels(Direction::kForward, 10e-3), empty_kernels(100)};
  EXPECT_NEAR(time_of(plan, profile).forward().compute_seconds,
              10e-3 + 100 * 4e-6 + 101 * (16.9e-6 + 10e-6),
              1e-9);
}

TEST(StageTime, PutsTensorCommunicationIntoItsDirection) {
  const Plan plan = small_plan({{"parallelism", {{"tensor", 8}}}});
  const CollectiveCall call = call_of(CollectiveKind::kAllReduce, GroupKind::kTensor, 8, 64 * kMiB);
  RankProfile profile = profile_of(plan, 0);
  profile.collectives.push_back(collectives(Direction::kForward, call, 8 * 4));  // 8 micro-batches
  const StageTime time = time_of(plan, profile);
  EXPECT_NEAR(time.forward().communication_seconds.tensor, 4 * seconds_of(plan, call), 1e-12);
  EXPECT_EQ(time.backward().communication_seconds.tensor, 0);
}

// The tensor and context ranks together share the router's loss. With one context rank, they are
// the tensor ranks.
TEST(StageTime, CountsTensorAndContextRanksAsContextWhereThereAreSome) {
  const auto communication = [](int64_t context) {
    const Plan plan =
        small_plan({{"parallelism", {{"tensor", 8 / context}, {"context", context}}}});
    const auto call = call_of(CollectiveKind::kAllReduce, GroupKind::kTensorContext, 8, 64 * kMiB);
    RankProfile profile = profile_of(plan, 0);
    profile.collectives = {collectives(Direction::kForward, call, 8),
                           collectives(Direction::kOptimizerStep, call, 1)};
    const StageTime time = time_of(plan, profile);
    return std::pair(time.forward().communication_seconds, time.step_end.communication_seconds);
  };
  const auto [in_forward, at_end] = communication(1);
  EXPECT_GT(in_forward.tensor, 0);
  EXPECT_GT(at_end.tensor, 0);
  EXPECT_EQ(in_forward.context + at_end.context, 0);
  const auto [shared_forward, shared_end] = communication(2);
  EXPECT_EQ(shared_forward.tensor + shared_end.tensor, 0);
  EXPECT_GT(shared_forward.context, 0);
}

TEST(StageTime, TellsSendsApartByTheirDirectionAndCountsNoTimeForThem) {
  const Plan plan = pipeline_plan();
  CollectiveCall to_next = call_of(CollectiveKind::kSend, GroupKind::kPipeline, 4, 1000);
  to_next.peer = 2;
  CollectiveCall to_previous = call_of(CollectiveKind::kSend, GroupKind::kPipeline, 4, 500);
  to_previous.peer = 0;
  CollectiveCall receive = call_of(CollectiveKind::kRecv, GroupKind::kPipeline, 4, 1000);
  receive.peer = 0;
  RankProfile profile = profile_of(plan, 1);
  profile.collectives = {collectives(Direction::kForward, to_next, 8),
                         collectives(Direction::kBackward, to_previous, 8),
                         collectives(Direction::kForward, receive, 8)};
  const StageTime time = time_of(plan, profile);
  EXPECT_EQ(time.send_forward_bytes, 1000);
  EXPECT_EQ(time.send_backward_bytes, 500);
  EXPECT_EQ(sum_of(time.forward().communication_seconds), 0);
}

OperatorRecord attention_of(Direction direction, double flops, int64_t count) {
  OperatorRecord record = kernels(direction, 0);
  record.name = "aten::_scaled_dot_product_flash_attention";
  record.shapes = {{1, 8, 4096, 128}};
  record.dtype = "BFloat16";
  record.flops = flops;
  record.module_kind = "attention";
  record.count = count;
  return record;
}

TEST(StageTime, CountsAnExchangeOfHeadsInFull) {
  const Plan plan = small_plan({{"parallelism", {{"context", 8}, {"context_comm", "a2a"}}}});
  const auto call = call_of(CollectiveKind::kAllToAll, GroupKind::kContext, 8, 64 * kMiB);
  RankProfile profile = profile_of(plan, 0);
  profile.operators = {attention_of(Direction::kBackward, 1e11, 8)};
  profile.collectives = {collectives(Direction::kBackward, call, 8 * 4)};
  EXPECT_NEAR(time_of(plan, profile).backward().communication_seconds.context,
              4 * seconds_of(plan, call),
              1e-12);
}

TEST(StageTime, OfDeepspeedSendsPartsThatTheTensorRanksGather) {
  const Plan plan = small_plan({{"parallelism", {{"tensor", 4}, {"pipeline", 2}}},
                                {"training", {{"framework", "megatron-deepspeed"}}}});
  CollectiveCall to_next = call_of(CollectiveKind::kSend, GroupKind::kPipeline, 2, 64 * kMiB);
  CollectiveCall receive = call_of(CollectiveKind::kRecv, GroupKind::kPipeline, 2, 64 * kMiB);
  to_next.peer = receive.peer = 1;
  RankProfile profile = profile_of(plan, 0, 1, 1);  // the host is not in the way
  profile.collectives = {collectives(Direction::kForward, to_next, plan.micro_batches()),
                         collectives(Direction::kBackward, receive, plan.micro_batches())};
  const StageTime time = time_of(plan, profile);
  EXPECT_EQ(time.send_forward_bytes, 16 * kMiB);
  const auto gather = call_of(CollectiveKind::kAllGather, GroupKind::kTensor, 4, 64 * kMiB);
  EXPECT_NEAR(time.backward().communication_seconds.tensor, seconds_of(plan, gather), 1e-12);
  EXPECT_EQ(time.forward().communication_seconds.tensor, 0);
}

TEST(StageTime, HasBucketsOfAProfileWithoutAnOrderAtTheEnd) {
  const Plan plan = small_plan();
  const auto reduce =
      call_of(CollectiveKind::kReduceScatter, GroupKind::kDataContext, 8, 160 * kMiB);
  const auto gather = call_of(CollectiveKind::kAllGather, GroupKind::kDataContext, 8, 80 * kMiB);
  RankProfile profile = profile_of(plan, 0);
  profile.collectives = {collectives(Direction::kReduceGradients, reduce, 5),
                         collectives(Direction::kOptimizerStep, gather, 3)};
  for (CollectiveRecord& record : profile.collectives) record.chunk = 0;
  const StageTime time = time_of(plan, profile);
  EXPECT_NEAR(time.chunks[0].reduction.end_seconds, 5 * seconds_of(plan, reduce), 1e-12);
  EXPECT_EQ(time.chunks[0].reduction.beside_seconds, 0);
  EXPECT_NEAR(time.gather_seconds, 3 * seconds_of(plan, gather), 1e-12);
  EXPECT_EQ(sum_of(time.step_end.communication_seconds), 0);
}

TEST(StageTime, LeavesTheGradientNormToTheEndOfTheStep) {
  const Plan plan = pipeline_plan();
  const auto norm = call_of(CollectiveKind::kAllReduce, GroupKind::kModel, 4, 4);
  RankProfile profile = profile_of(plan, 0);
  profile.collectives = {collectives(Direction::kOptimizerStep, norm, 1)};
  EXPECT_GT(sum_of(time_of(plan, profile).step_end.communication_seconds), 0);
}

// 8 micro-batches, on the last stage of 2.
TEST(StageTime, GivesEachChunkWhatRanInIt) {
  Plan plan = small_plan({{"parallelism", {{"pipeline", 2}}}});
  plan.parallelism.virtual_stages = 2;
  const auto m = static_cast<double>(plan.micro_batches());
  RankProfile profile = profile_of(plan, plan.world_size() - 1);
  profile.operators.clear();
  for (const auto& [direction, chunk, seconds] : {std::tuple(Direction::kForward, 0, 1e-3),
                                                  std::tuple(Direction::kForward, 1, 8e-3),
                                                  std::tuple(Direction::kBackward, 0, 2e-3),
                                                  std::tuple(Direction::kBackward, 1, 6e-3)}) {
    profile.operators.push_back(kernels(direction, m * seconds));
    profile.operators.back().chunk = chunk;
  }
  const StageTime time = time_of(plan, profile);
  ASSERT_EQ(time.chunks.size(), 2u);
  EXPECT_NEAR(time.chunks[0].forward.compute_seconds, 1e-3, 1e-12);
  EXPECT_NEAR(time.chunks[1].forward.compute_seconds, 8e-3, 1e-12);
  EXPECT_NEAR(time.chunks[0].backward.compute_seconds, 2e-3, 1e-12);
  EXPECT_NEAR(time.chunks[1].backward.compute_seconds, 6e-3, 1e-12);
}

TEST(StageTime, GivesEachChunkItsBuckets) {
  Plan plan = small_plan({{"parallelism", {{"pipeline", 2}}}});
  plan.parallelism.virtual_stages = 2;
  RankProfile profile = profile_of(plan, 0);
  const auto reduce =
      call_of(CollectiveKind::kReduceScatter, GroupKind::kDataContext, 4, 1024 * kMiB);
  profile.collectives = {collectives(Direction::kReduceGradients, reduce, 3),
                         collectives(Direction::kReduceGradients, reduce, 1)};
  profile.collectives[0].chunk = 0;
  profile.collectives[1].chunk = 1;
  const StageTime time = time_of(plan, profile);
  // The second chunk has nothing else to do: the call waits for the host.
  EXPECT_NEAR(time.chunks[0].reduction.end_seconds, 3 * seconds_of(plan, reduce), 1e-12);
  EXPECT_NEAR(time.chunks[1].reduction.end_seconds, 16.9e-6 + seconds_of(plan, reduce), 1e-12);
}

/// By how much the last backward is longer that runs beside a reduction of a GiB over the data
/// ranks, on `machines` of eight GPUs: 0.1 s of kernels and `calls`.
double added_beside(int64_t machines, int64_t tensor, const std::vector<CollectiveCall>& calls) {
  const Plan plan = small_plan({{"cluster", {{"nodes", machines}}},
                                {"parallelism", {{"tensor", tensor}}},
                                {"training", {{"global_batch_size", 8 * machines / tensor}}}});
  EXPECT_EQ(plan.micro_batches(), 1);
  RankProfile profile = profile_of(plan, 0, 0, 0.1);
  const auto reduce = call_of(CollectiveKind::kReduceScatter,
                              GroupKind::kDataContext,
                              plan.data_parallel_size(),
                              1024 * kMiB);
  profile.collectives = {collectives(Direction::kReduceGradients, reduce, 1)};
  profile.collectives[0].chunk = 0;
  constexpr int64_t kNetwork = 1;
  StepOrder order{.modules = {""}, .events = {}};
  const auto add = [&](OrderKind kind, int64_t item, int64_t stream, Direction direction) {
    order.events.add({.kind = kind, .stream = stream, .item = item, .direction = direction});
  };
  order.records = 1;
  add(OrderKind::kRecord, 0, kMainStream, Direction::kReduceGradients);
  add(OrderKind::kWait, 0, kNetwork, Direction::kReduceGradients);
  add(OrderKind::kCollective, 0, kNetwork, Direction::kReduceGradients);
  for (const CollectiveCall& call : calls) {
    add(OrderKind::kCollective,
        static_cast<int64_t>(profile.collectives.size()),
        kMainStream,
        Direction::kBackward);
    profile.collectives.push_back(collectives(Direction::kBackward, call, 1));
  }
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    add(OrderKind::kOperator, static_cast<int64_t>(i), kMainStream, profile.operators[i].direction);
  }
  profile.order = std::move(order);
  return time_of(plan, profile).chunks[0].reduction.backward_added_seconds;
}

// All-reduces of pairs and the reduction among four pairs need the same NVLink ports. Eight tensor
// ranks fill a machine: each reduces with its like on another, over its own NIC.
TEST(StageTime, GroupsThatNeedTheSamePortSlowEachOther) {
  const auto among = [](int64_t tensor) {
    return call_of(CollectiveKind::kAllReduce, GroupKind::kTensor, tensor, 256 * kMiB);
  };
  EXPECT_GT(added_beside(1, 2, {among(2), among(2)}), added_beside(1, 2, {}) + 1e-4);
  EXPECT_NEAR(added_beside(2, 8, {among(8), among(8)}), added_beside(2, 8, {}), 1e-9);
}

}  // namespace
}  // namespace estimator
