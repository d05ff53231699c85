#include "estimator/communication/nvls_pipeline.h"

#include <gtest/gtest.h>

#include "estimator/base/units.h"

namespace estimator {
namespace {

NcclTopology h100_nodes(int64_t nodes) {
  return {.compute_capability = 90, .ranks = 8 * nodes, .nodes = nodes, .nics = 8, .nic_gbps = 50};
}

// 16 channels x 8 heads. 64 waves of 128 KiB are 1 GiB, 8 of 64 KiB are 64 MiB, 2 of 32 KiB 8 MiB.
TEST(NvlsPipeline, OfH100HalvesItsChunksBelowOneGibibyte) {
  const auto chunk = [](int64_t bytes) {
    return nvls_pipeline(NcclAlgorithm::kNvls, h100_nodes(1), bytes).chunk_bytes;
  };
  EXPECT_EQ(chunk(kGiB), 128 * kKiB);
  EXPECT_EQ(chunk(kGiB - 1), 64 * kKiB);
  EXPECT_EQ(chunk(64 * kMiB), 64 * kKiB);
  EXPECT_EQ(chunk(64 * kMiB - 1), 32 * kKiB);
  EXPECT_EQ(chunk(8 * kMiB - 1), 16 * kKiB);
}

TEST(NvlsPipeline, WaveIsAChunkOfEveryChannelAndHeadOrTheWholeBuffer) {
  EXPECT_EQ(nvls_pipeline(NcclAlgorithm::kNvls, h100_nodes(1), kGiB).wave_bytes, 16 * kMiB);
  EXPECT_EQ(nvls_pipeline(NcclAlgorithm::kNvls, h100_nodes(1), kMiB).wave_bytes, kMiB);
}

TEST(NvlsPipeline, TreesOfFourMachinesAndMoreHaveChunksOf64KiB) {
  EXPECT_EQ(nvls_pipeline(NcclAlgorithm::kNvlsTree, h100_nodes(2), kGiB).chunk_bytes, 128 * kKiB);
  EXPECT_EQ(nvls_pipeline(NcclAlgorithm::kNvlsTree, h100_nodes(4), kGiB).chunk_bytes, 64 * kKiB);
}

// 24 channels and at most 32 heads.
TEST(NvlsPipeline, OfAnNvlinkDomainHasThirtyTwoHeads) {
  const NcclTopology rack{.compute_capability = 100, .ranks = 72, .nodes = 1};
  EXPECT_EQ(nvls_pipeline(NcclAlgorithm::kNvls, rack, 8 * kGiB).wave_bytes, 24 * 32 * 128 * kKiB);
}

NcclTopology racks(int64_t count, int64_t version = kModelledNccl) {
  return {.compute_capability = 100,
          .ranks = 72 * count,
          .nodes = count,
          .nics = 72,
          .nic_gbps = 50,
          .nics_behind_cpu = true,
          .version = version};
}

// Waves of 32 heads: 32 channels until 2.27.3 counted 24 in one node; trees of fewer than four
// nodes kept chunks of 128 KiB until 2.30.3.
TEST(NvlsPipeline, OfBlackwellIsThatOfTheVersion) {
  const auto wave_chunks = [](int64_t nodes, int64_t version, int64_t chunk) {
    const NcclAlgorithm algorithm = nodes == 1 ? NcclAlgorithm::kNvls : NcclAlgorithm::kNvlsTree;
    return nvls_pipeline(algorithm, racks(nodes, version), 16 * kGiB).wave_bytes / (32 * chunk);
  };
  EXPECT_EQ(wave_chunks(1, 22602, 128 * kKiB), 32);
  EXPECT_EQ(wave_chunks(1, 22703, 128 * kKiB), 24);
  EXPECT_EQ(wave_chunks(2, 22602, 128 * kKiB), 32);
  EXPECT_EQ(wave_chunks(2, 23003, 64 * kKiB), 32);
  EXPECT_EQ(wave_chunks(20, 22907, 64 * kKiB), 32);
  EXPECT_EQ(wave_chunks(20, 23003, 128 * kKiB), 24);
}

}  // namespace
}  // namespace estimator
