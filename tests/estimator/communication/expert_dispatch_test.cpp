#include "estimator/communication/expert_dispatch.h"

#include <gtest/gtest.h>

#include "estimator/base/errors.h"
#include "estimator/memory/dispatcher_memory.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

ExpertDispatch dispatch_over(int64_t ranks, int64_t of_domain) {
  return {.backend = FlexBackend::kHybridEp,
          .place = {.ranks = ranks, .ranks_per_domain = of_domain},
          .tokens = 4096,
          .hidden_size = 7168,
          .draw = {.experts = 64, .topk = 8},
          .multiprocessors = 16};
}

/// Of 8 GPUs in each machine, a port of NVLink 5 and a NIC of 400 Gb/s for each.
Fabric dispatch_fabric(const char* gpu) {
  Fabric fabric = fabric_of(small_plan({{"cluster", {{"gpu", gpu}}}}));
  fabric.intra.nominal_bytes_per_second = 900e9;
  fabric.inter.nominal_bytes_per_second = 50e9;
  fabric.nics_per_gpu = 1;
  return fabric;
}

// C(56, 8) / C(64, 8) = 0.32093: none of eight experts is one of a rank's eight.
TEST(ExpertDispatch, SendsATokenOnceToEachRankThatHasOneOfItsExperts) {
  EXPECT_NEAR(dispatch_over(8, 8).received_tokens(), 4096 * 8 * (1 - 0.32093), 1);
  ExpertDispatch one = dispatch_over(8, 8);
  one.draw.topk = 1;
  EXPECT_NEAR(one.received_tokens(), 4096, 1e-6);
}

// C(32, 8) / C(64, 8) = 0.0023764
TEST(ExpertDispatch, SendsATokenOnceToEachDomain) {
  EXPECT_NEAR(dispatch_over(16, 8).tokens_to_domains(), 4096 * 2 * (1 - 0.0023764), 1);
  EXPECT_NEAR(dispatch_over(8, 8).tokens_to_domains(), 4096, 1e-6);
}

// Of 4 of 8 groups a token has 8 of 32 experts. Half of the ranks, which have a group each, get it
// if one of 8 experts is among these: C(24, 8) / C(32, 8) = 0.069922. Two groups are a domain's:
// both are a token's with 3/14, and one of them with 8/14; C(16, 8) / C(32, 8) = 0.0012236.
TEST(ExpertDispatch, SendsATokenToTheRanksOfItsGroups) {
  ExpertDispatch call = dispatch_over(8, 2);
  call.draw.groups = 8;
  call.draw.group_topk = 4;
  EXPECT_NEAR(call.received_tokens(), 4096 * 4 * (1 - 0.069922), 1);
  EXPECT_NEAR(call.tokens_to_domains(),
              4096 * 4 * (3.0 / 14 * (1 - 0.0012236) + 8.0 / 14 * (1 - 0.069922)),
              1);
  call.place.ranks = 16;  // of four experts, half of a group: C(28, 8) / C(32, 8) = 0.29549
  EXPECT_NEAR(call.received_tokens(), 4096 * 8 * (1 - 0.29549), 1);
}

TEST(ExpertDispatch, TakesThePublishedTimes) {
  const Fabric fabric = dispatch_fabric("b200-sxm");
  const double tokens = dispatch_over(8, 8).received_tokens();
  EXPECT_NEAR(expert_dispatch_seconds(dispatch_over(8, 8), fabric, false),
              tokens * 7168 * 2 / 734.95e9,
              1e-9);
  EXPECT_NEAR(expert_dispatch_seconds(dispatch_over(8, 8), fabric, true),
              tokens * 7168 * 2 / 673.84e9,
              1e-9);
  EXPECT_NEAR(expert_dispatch_seconds(dispatch_over(16, 8), fabric, false),
              dispatch_over(16, 8).tokens_to_domains() * 7168 * 2 / 71.71e9,
              1e-9);
}

// Kernels of the same generation of GPUs: those of an H800 on an H100, whose port is 2.25 times as
// fast.
TEST(ExpertDispatch, GoesAtTheRateOfTheGpusGenerationScaledByThePort) {
  ExpertDispatch call = dispatch_over(8, 8);
  call.backend = FlexBackend::kDeepEp;
  Fabric fabric = dispatch_fabric("h100-sxm");
  fabric.intra.nominal_bytes_per_second = 450e9;
  EXPECT_NEAR(expert_dispatch_seconds(call, fabric, false),
              call.received_tokens() * 7168 * 2 / (153e9 * 2.25),
              1e-9);
}

// Config::get_nvl_buffer_size_hint and get_rdma_buffer_size_hint, by hand: ten channels; a token
// has 2048 + 8 + 128 x 12 + 128 x 4 bytes, over the network 16 more.
TEST(ExpertDispatch, OfDeepEpHasTheBuffersOfItsConfiguration) {
  ExpertDispatch call = dispatch_over(8, 8);
  call.backend = FlexBackend::kDeepEp;
  call.hidden_size = 1024;
  call.multiprocessors = 20;
  EXPECT_EQ(expert_dispatch_buffer_bytes(call), 84'051'584);
  call.place.ranks = 16;
  EXPECT_EQ(expert_dispatch_buffer_bytes(call), 94'558'464 + 23'074'944);
  call.place.ranks = 12;
  EXPECT_THROW(expert_dispatch_buffer_bytes(call), UserError);
}

// Room for all tokens of all ranks: rows of bf16, a weight of each expert and a scale of 128
// columns.
TEST(ExpertDispatch, OfHybridEpHasRoomForAllTokens) {
  ExpertDispatch call = dispatch_over(8, 8);
  call.tokens = 512;
  call.hidden_size = 1024;
  EXPECT_EQ(expert_dispatch_buffer_bytes(call), 512 * 8 * (2048 + 64 * 4 + 32));
  call.place = {.ranks = 16, .ranks_per_domain = 8};
  EXPECT_EQ(expert_dispatch_buffer_bytes(call),
            512 * 16 * (2048 + 32 * 4 + 32) + 512 * (2048 + 64 * 4 + 32) +
                512 * (3 * (2048 + 32 * 4) + 32));
}

TEST(DispatcherMemory, IsThatOfTheDispatcherFlexAlone) {
  const auto memory = [](const char* dispatcher) {
    const Plan plan = small_plan({{"model", {{"num_experts", 4}, {"add_bias_linear", false}}},
                                  {"parallelism", {{"expert", 2}}},
                                  {"training", {{"moe_token_dispatcher_type", dispatcher}}}});
    return dispatcher_memory(plan, ParallelLayout(plan.parallelism), fabric_of(plan));
  };
  EXPECT_FALSE(memory("alltoall"));
  ASSERT_TRUE(memory("flex"));
  EXPECT_EQ(memory("flex")->source, Source::kComputed);
}

}  // namespace
}  // namespace estimator
