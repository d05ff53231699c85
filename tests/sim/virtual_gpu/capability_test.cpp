#include "sim/virtual_gpu/capability.h"

#include <gtest/gtest.h>

namespace virtual_gpu {
namespace {

TEST(Capability, OfH100IsAsTheProgrammingGuideHasIt) {
  const CapabilityFacts* facts = find_capability(9, 0);
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->threads_per_multiprocessor, 2048);
  EXPECT_EQ(facts->blocks_per_multiprocessor, 32);
  EXPECT_EQ(facts->shared_bytes_per_multiprocessor, 233472);  // 228 KB
  EXPECT_EQ(facts->shared_bytes_per_block_optin, 232448);     // 227 KB
}

TEST(Capability, WithMostSharedMemoryReservedForOneBlockFitsTheMultiprocessor) {
  for (const auto& [major, minor] :
       {std::pair{7, 0}, {7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {12, 0}}) {
    const CapabilityFacts* facts = find_capability(major, minor);
    ASSERT_NE(facts, nullptr) << major << "." << minor;
    EXPECT_EQ(facts->shared_bytes_per_block_optin + facts->reserved_shared_bytes_per_block,
              facts->shared_bytes_per_multiprocessor)
        << major << "." << minor;
  }
}

TEST(Capability, ThatIsNotInTheTableIsNull) {
  EXPECT_EQ(find_capability(6, 0), nullptr);
  EXPECT_EQ(find_capability(9, 9), nullptr);
}

}  // namespace
}  // namespace virtual_gpu
