#include "sim/virtual_gpu/cudart/gpu_memory.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace virtual_gpu {
namespace {

constexpr uint64_t kPage = DeviceMemory::kPageBytes;

TEST(DeviceMemory, GivesIncreasingAddressesInWholePages) {
  DeviceMemory memory(1, 100 * kPage);
  const uint64_t first = memory.allocate(0, 1).value();
  const uint64_t second = memory.allocate(0, kPage + 1).value();
  EXPECT_EQ(first % kPage, 0u);
  EXPECT_EQ(second, first + kPage);
  EXPECT_EQ(memory.used_bytes(0), 3 * kPage);
}

TEST(DeviceMemory, KeepsWhatIsOutsideOfItOnEveryDevice) {
  DeviceMemory memory(2, 4 * kPage, kPage);
  EXPECT_EQ(memory.used_bytes(1), kPage);
  EXPECT_FALSE(memory.allocate(1, 3 * kPage + 1));
  EXPECT_TRUE(memory.allocate(1, 3 * kPage));
  EXPECT_EQ(memory.used_bytes(0), kPage);
}

TEST(DeviceMemory, KnowsHowMuchWasInUseAtMost) {
  DeviceMemory memory(2, 10 * kPage, kPage);
  const uint64_t address = memory.allocate(0, 5 * kPage).value();
  EXPECT_TRUE(memory.free(address));
  EXPECT_TRUE(memory.release(memory.create(0, 2 * kPage).value()));
  EXPECT_FALSE(memory.allocate(0, 10 * kPage));
  EXPECT_EQ(memory.most_used_bytes(0), 6 * kPage);
  EXPECT_EQ(memory.most_used_bytes(1), kPage);
}

TEST(DeviceMemory, GivesAllOfTheCapacityAndNotOneByteMore) {
  DeviceMemory memory(1, 4 * kPage);
  const uint64_t address = memory.allocate(0, 3 * kPage).value();
  EXPECT_FALSE(memory.allocate(0, kPage + 1));
  ASSERT_TRUE(memory.allocate(0, kPage));
  EXPECT_FALSE(memory.allocate(0, 1));
  EXPECT_TRUE(memory.free(address));
  EXPECT_TRUE(memory.allocate(0, 3 * kPage));
}

TEST(DeviceMemory, DoesNotGiveAPageOfWhichOnlyAPartIsThere) {
  DeviceMemory memory(1, kPage + kPage / 2);
  EXPECT_TRUE(memory.allocate(0, kPage));
  EXPECT_FALSE(memory.allocate(0, 1));
}

TEST(DeviceMemory, RefusesSizesThatOverflow) {
  DeviceMemory memory(1, 4 * kPage);
  EXPECT_FALSE(memory.allocate(0, ~uint64_t{0}));
  EXPECT_EQ(memory.used_bytes(0), 0u);
}

TEST(DeviceMemory, FreesOnlyWhatItAllocatedAndOnlyOnce) {
  DeviceMemory memory(1, 4 * kPage);
  const uint64_t address = memory.allocate(0, 2 * kPage).value();
  EXPECT_FALSE(memory.free(address + kPage));
  EXPECT_TRUE(memory.free(address));
  EXPECT_FALSE(memory.free(address));
}

TEST(DeviceMemory, CountsEachDeviceForItself) {
  DeviceMemory memory(2, kPage);
  const uint64_t first = memory.allocate(0, kPage).value();
  const uint64_t second = memory.allocate(1, kPage).value();
  EXPECT_FALSE(memory.allocate(1, kPage));
  EXPECT_EQ(memory.device_at(first), 0);
  EXPECT_EQ(memory.device_at(second + kPage - 1), 1);
  EXPECT_EQ(memory.device_at(second + kPage), std::nullopt);
}

TEST(DeviceMemory, ChangesItsCapacityOnlyBeforeTheFirstAllocation) {
  DeviceMemory memory(1, kPage);
  EXPECT_TRUE(memory.set_capacity_bytes(8 * kPage));
  ASSERT_TRUE(memory.allocate(0, 8 * kPage));
  EXPECT_FALSE(memory.set_capacity_bytes(16 * kPage));
  EXPECT_EQ(memory.capacity_bytes(), 8 * kPage);
}

TEST(DeviceMemory, TakesMemoryWhenAHandleIsCreatedNotWhenAddressesAreReserved) {
  DeviceMemory memory(1, 4 * kPage);
  const uint64_t address = memory.reserve_addresses(1000 * kPage, 0);
  EXPECT_EQ(memory.used_bytes(0), 0u);
  EXPECT_EQ(memory.device_at(address), std::nullopt);
  const uint64_t handle = memory.create(0, 3 * kPage).value();
  EXPECT_EQ(memory.used_bytes(0), 3 * kPage);
  EXPECT_FALSE(memory.create(0, 2 * kPage));
  EXPECT_TRUE(memory.map(address + kPage, 3 * kPage, handle));
  EXPECT_EQ(memory.device_at(address), std::nullopt);
  EXPECT_EQ(memory.device_at(address + kPage), 0);
}

TEST(DeviceMemory, GivesMappedMemoryBackAfterBothUnmapAndRelease) {
  DeviceMemory memory(1, 4 * kPage);
  const uint64_t address = memory.reserve_addresses(8 * kPage, 0);
  const uint64_t handle = memory.create(0, 2 * kPage).value();
  ASSERT_TRUE(memory.map(address, 2 * kPage, handle));
  EXPECT_TRUE(memory.release(handle));
  EXPECT_EQ(memory.used_bytes(0), 2 * kPage);
  EXPECT_TRUE(memory.unmap(address, 2 * kPage));
  EXPECT_EQ(memory.used_bytes(0), 0u);
  EXPECT_FALSE(memory.release(handle));
  EXPECT_TRUE(memory.release_addresses(address, 8 * kPage));
}

TEST(DeviceMemory, KeepsMemoryWhileARetainedHandleIsOut) {
  DeviceMemory memory(1, 4 * kPage);
  const uint64_t address = memory.reserve_addresses(kPage, 0);
  const uint64_t handle = memory.create(0, kPage).value();
  ASSERT_TRUE(memory.map(address, kPage, handle));
  EXPECT_EQ(memory.retain(address), handle);
  EXPECT_TRUE(memory.unmap(address, kPage));
  EXPECT_TRUE(memory.release(handle));
  EXPECT_EQ(memory.used_bytes(0), kPage);
  EXPECT_TRUE(memory.release(handle));
  EXPECT_EQ(memory.used_bytes(0), 0u);
}

TEST(DeviceMemory, MapsOnlyReservedAndFreeAddresses) {
  DeviceMemory memory(1, 8 * kPage);
  const uint64_t address = memory.reserve_addresses(2 * kPage, 0);
  const uint64_t handle = memory.create(0, kPage).value();
  const uint64_t wide = memory.create(0, 2 * kPage).value();
  EXPECT_FALSE(memory.map(address + 2 * kPage, kPage, handle)) << "not reserved";
  EXPECT_FALSE(memory.map(address, kPage, 12345)) << "no such handle";
  ASSERT_TRUE(memory.map(address + kPage, kPage, handle));
  EXPECT_FALSE(memory.map(address + kPage, kPage, handle)) << "already mapped";
  EXPECT_FALSE(memory.map(address, 2 * kPage, wide)) << "overlaps";
}

TEST(DeviceMemory, UnmapsOnlyWholeMappings) {
  DeviceMemory memory(1, 8 * kPage);
  const uint64_t address = memory.reserve_addresses(4 * kPage, 0);
  const uint64_t handle = memory.create(0, 2 * kPage).value();
  ASSERT_TRUE(memory.map(address, 2 * kPage, handle));
  EXPECT_FALSE(memory.unmap(address, kPage));
  EXPECT_FALSE(memory.unmap(address + kPage, kPage));
  EXPECT_FALSE(memory.unmap(address + 2 * kPage, kPage));
  EXPECT_TRUE(memory.unmap(address, 2 * kPage));
}

TEST(DeviceMemory, HonoursTheAlignmentOfAReservation) {
  DeviceMemory memory(1, 8 * kPage);
  memory.allocate(0, kPage);
  EXPECT_EQ(memory.reserve_addresses(kPage, 64 * kPage) % (64 * kPage), 0u);
}

TEST(DeviceMemory, PlacesVariablesOutsideTheCapacity) {
  DeviceMemory memory(1, kPage);
  const uint64_t address = memory.place_variable(0, 100);
  EXPECT_EQ(memory.used_bytes(0), 0u);
  EXPECT_EQ(memory.device_at(address + 99), 0);
  EXPECT_FALSE(memory.free(address));
}

TEST(DeviceMemory, CountsExactlyFromManyThreads) {
  DeviceMemory memory(1, 64 * kPage);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        const uint64_t address = memory.allocate(0, kPage).value();
        ASSERT_TRUE(memory.free(address));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.used_bytes(0), 0u);
}

}  // namespace
}  // namespace virtual_gpu
