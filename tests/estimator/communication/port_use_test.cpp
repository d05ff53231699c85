#include "estimator/communication/port_use.h"

#include <gtest/gtest.h>

#include <string>

#include "estimator/base/units.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// H100: a ring moves 370 GB/s over NVLink and 48 over each GPU's NIC.
Fabric h100_fabric(const Json& cluster = Json::object()) {
  return fabric_of(small_plan({{"cluster", cluster}, {"training", {{"global_batch_size", 16}}}}));
}

constexpr int64_t kMegabyte = 1'000'000;

// 8 ranks: 7/8 of 320 MB are 280 MB, 0.757 ms at 370 GB/s; an all-reduce moves twice that, and by
// NVLS 9/8 of 320 MB.
TEST(PortUse, InsideAnDomainIsOfTheLinkAlone) {
  const Fabric fabric = h100_fabric();
  const auto use = [&](CollectiveKind kind, const CollectiveTime& time) {
    return port_use(call_of(kind, 320 * kMegabyte), {8, 8}, time, fabric);
  };
  NcclOption nvls;
  nvls.algorithm = NcclAlgorithm::kNvls;
  EXPECT_NEAR(use(CollectiveKind::kAllGather, {.seconds = 2e-3}).link, 0.280 / 370 / 2e-3, 1e-12);
  EXPECT_NEAR(use(CollectiveKind::kAllReduce, {.seconds = 2e-3}).link, 0.560 / 370 / 2e-3, 1e-12);
  EXPECT_NEAR(use(CollectiveKind::kAllReduce, {.seconds = 2e-3, .option = nvls}).link,
              0.360 / 370 / 2e-3,
              1e-12);
  EXPECT_EQ(use(CollectiveKind::kAllGather, {.seconds = 2e-3}).nic, 0);
}

// One rank on each machine: 3/4 of 64 MB are 48 MB, 1 ms of its NIC.
TEST(PortUse, OfOneRankOnEachDomainIsOfTheNicAlone) {
  const PortUse use = port_use(call_of(CollectiveKind::kReduceScatter, 64 * kMegabyte),
                               {4, 1},
                               {.seconds = 2e-3},
                               h100_fabric());
  EXPECT_NEAR(use.nic, 0.5, 1e-12);
  EXPECT_EQ(use.link, 0);
}

// 2 x 8 ranks: a rank sends 15/16 of 409.6 MB, 384 MB. An eighth of all leaves the domain, 48 MB or
// 1 ms of a NIC; the rest, 336 MB, is 0.908 ms of NVLink. In pairs a half leaves.
TEST(PortUse, OfARingAcrossDomainsIsOfBothPorts) {
  const CollectiveCall gather = call_of(CollectiveKind::kAllGather, 409'600'000);
  const PortUse full = port_use(gather, {16, 8}, {.seconds = 1e-3}, h100_fabric());
  EXPECT_NEAR(full.nic, 1, 1e-12);
  EXPECT_NEAR(full.link, 336.0 / 370, 1e-12);
  const PortUse pairs = port_use(gather, {16, 2}, {.seconds = 4e-3}, h100_fabric());
  EXPECT_NEAR(pairs.nic, 1, 1e-12);
  EXPECT_NEAR(pairs.link, 192.0 / 370 / 4, 1e-12);
}

// Of 160 MB among 2 x 8 ranks, 10 MB go to each: 70 MB inside, 80 MB outside.
TEST(PortUse, OfAnExchangeIsByWhereItsPeersAre) {
  const PortUse use = port_use(call_of(CollectiveKind::kAllToAll, 160 * kMegabyte),
                               {16, 8},
                               {.seconds = 2e-3},
                               h100_fabric());
  EXPECT_NEAR(use.link, 0.070 / 370 / 2e-3, 1e-12);
  EXPECT_NEAR(use.nic, 0.080 / 48 / 2e-3, 1e-12);
}

TEST(PortUse, WithoutNvlinkTheNicIsBehindTheSamePort) {
  const Fabric fabric = h100_fabric({{"intra_link", "pcie5x16"}});
  const PortUse use = port_use(
      call_of(CollectiveKind::kReduceScatter, 64 * kMegabyte), {4, 1}, {.seconds = 2e-3}, fabric);
  EXPECT_NEAR(use.link, 48e6 / fabric.intra.achieved_bytes_per_second / 2e-3, 1e-12);
}

TEST(PortUse, OfAMessageIsOfThePortBetweenItsRanks) {
  const Fabric fabric = h100_fabric({{"nodes", 2}});
  const PortUse near = send_port_use(37 * kMegabyte, 0, 7, 1e-3, fabric);
  EXPECT_NEAR(near.link, 0.1, 1e-12);
  EXPECT_EQ(near.nic, 0);
  const PortUse far = send_port_use(24 * kMegabyte, 0, 8, 1e-3, fabric);
  EXPECT_NEAR(far.nic, 0.5, 1e-12);
  EXPECT_EQ(far.link, 0);
}

// A ring of 2 x 2 ranks with 24 MB each: half of the messages go over NVLink.
TEST(PortUse, OfARingOfMessagesIsOfBothPorts) {
  const PortUse use = port_use(call_of(CollectiveKind::kSend, 24 * kMegabyte),
                               {4, 2},
                               {.seconds = 1e-3},
                               h100_fabric({{"nodes", 2}}));
  EXPECT_NEAR(use.nic, 0.25, 1e-12);
  EXPECT_NEAR(use.link, 0.012 / 370 / 1e-3, 1e-12);
}

}  // namespace
}  // namespace estimator
