// What several threads of a program enter at once: its own, autograd's and ProcessGroupNCCL's
// watchdog. The thread sanitizer looks on (tests/README.md); what is expected holds without it too.
#include "tests/sim/virtual_gpu/threads.h"

#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <set>

#include "sim/virtual_gpu/cudart/gpu_memory.h"
#include "sim/virtual_gpu/cudart/pinned_memory.h"
#include "sim/virtual_gpu/cudart/shadow.h"
#include "sim/virtual_gpu/cudart/timeline.h"
#include "sim/virtual_gpu/cudart/work_log.h"
#include "sim/virtual_gpu/kernels/kernel_table.h"

namespace virtual_gpu {
namespace {

constexpr int kRounds = 200;
constexpr uint64_t kBase = uint64_t{1} << 48;
constexpr uint64_t kDeviceBytes = uint64_t{1} << 34;

TEST(Threads, ReadFromTheShadowWhatTheyWroteBesideOthers) {
  Shadow shadow;
  shadow.enable(4096);
  at_once([&](int thread) {
    const uint64_t own = kBase + 4096 * (static_cast<uint64_t>(thread) + 1);
    for (int round = 0; round < kRounds; ++round) {
      const std::array<int, 2> written = {thread, round};
      shadow.write(own, written.data(), sizeof written);
      shadow.copy(own + 64, own, sizeof written);
      shadow.fill(kBase, round, 16);  // a place of all
      std::array<int, 2> read = {-1, -1};
      EXPECT_TRUE(shadow.read(own + 64, read.data(), sizeof read).has_value());
      EXPECT_EQ(read, written);
      shadow.forget(own + 64, sizeof written, shadow.time());
      EXPECT_FALSE(shadow.knows(own + 64, sizeof written).has_value());
      if (round % 16 == 0) shadow.forget_computed();
    }
  });
}

TEST(Threads, RememberInTheShadowEachForItself) {
  Shadow shadow;
  shadow.enable(4096);
  at_once([&](int thread) {
    const bool remembers = thread % 2 == 0;
    shadow.remember_here(remembers);
    const uint64_t own = kBase + 64 * static_cast<uint64_t>(thread);
    shadow.write(own, &thread, sizeof thread);
    EXPECT_EQ(shadow.knows(own, sizeof thread).has_value(), remembers);
  });
}

TEST(Threads, FindTheirWorkDoneOnceTheHostHasWaitedForIt) {
  Timeline timeline(2, true);
  at_once([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const int stream = timeline.open(thread % 2, thread % 3 == 0);
      Timeline::Clock event;
      timeline.add_work(stream);
      timeline.record(stream, event);
      timeline.wait_for_event(thread % 2, event);
      timeline.is_done(event);
      timeline.host_waits_for(stream);
      EXPECT_TRUE(timeline.is_done(event));
      timeline.host_waits_for_device(thread % 2);
      timeline.close(stream);
    }
  });
}

TEST(Threads, AreGivenMemoryThatNobodyElseHas) {
  DeviceMemory memory(2, kDeviceBytes);
  std::mutex mutex;
  std::set<uint64_t> addresses;
  at_once([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const auto address = memory.allocate(thread % 2, 1 + static_cast<uint64_t>(round));
      ASSERT_TRUE(address);
      EXPECT_EQ(memory.device_at(*address), thread % 2);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(addresses.insert(*address).second) << "given twice";
    }
  });
  at_once([&](int thread) {
    auto address = addresses.begin();
    std::advance(address, thread * kRounds);
    for (int round = 0; round < kRounds; ++round) EXPECT_TRUE(memory.free(*address++));
  });
  EXPECT_EQ(memory.used_bytes(0) + memory.used_bytes(1), 0u);
}

TEST(Threads, MapAndUnmapAddressesOfTheirOwn) {
  DeviceMemory memory(1, kDeviceBytes);
  constexpr uint64_t kPage = DeviceMemory::kPageBytes;
  at_once([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t address = memory.reserve_addresses(kPage, 0);
      const auto handle = memory.create(0, kPage);
      ASSERT_TRUE(handle);
      EXPECT_TRUE(memory.map(address, kPage, *handle));
      EXPECT_TRUE(memory.release(*handle));
      EXPECT_TRUE(memory.unmap(address, kPage));
      EXPECT_TRUE(memory.release_addresses(address, kPage));
    }
  });
  EXPECT_EQ(memory.used_bytes(0), 0u);
}

TEST(Threads, TakePageLockedMemoryAndGiveItBack) {
  HostMemory memory;
  at_once([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      void* const address = memory.allocate(4096);
      EXPECT_TRUE(memory.contains(address));
      EXPECT_TRUE(memory.free(address));
    }
  });
}

TEST(Threads, CountEveryLaunchAndEveryProduct) {
  KernelTable kernels;
  WorkLog log;
  std::array<char, 3> functions{};
  at_once([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      kernels.count_launch(kernels.find(&functions[static_cast<size_t>(round) % functions.size()]));
      log.count_gemm({.m = round % 4, .n = thread % 2, .k = 1, .batch = 1});
      log.count_host_read(nullptr, 8, true);
    }
  });
  uint64_t launches = 0, products = 0;
  kernels.visit([&](const Kernel& kernel) { launches += kernel.launches; });
  log.visit_gemms([&](const GemmShape&, uint64_t count) { products += count; });
  EXPECT_EQ(launches, uint64_t{kThreads} * kRounds);
  EXPECT_EQ(kernels.launches(), launches);
  EXPECT_EQ(products, launches);
  EXPECT_EQ(log.host_reads(), launches);
}

}  // namespace
}  // namespace virtual_gpu
