// How many blocks of a kernel fit on a multiprocessor, by what its code says that it needs.

#include <cuda_occupancy.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sim/virtual_gpu/kernels/fat_binary.h"
#include "sim/virtual_gpu/kernels/kernel_facts.h"
#include "tests/sim/virtual_gpu/elf_file.h"

namespace virtual_gpu {
namespace {

/// The kernel `norm` as ptxas 13.0 writes it: registers for the symbol 1, and shared memory that
/// from capability 9.0 on has what the device reserves, too.
std::string cubin(uint32_t registers, uint64_t shared_bytes, bool reserves) {
  const struct {
    uint8_t format = 4, kind = 0x2f;
    uint16_t size = 8;
    uint32_t symbol = 1, registers;
  } count{.registers = registers};
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  ElfFile elf;
  elf.add(".nv.info", bytes_of(count));
  elf.add(".nv.info.norm", std::string("\x03\x1b\xff\x00", 4));
  elf.add(".symtab", bytes_of(Elf64_Sym{}) + bytes_of(symbol));
  elf.link_last();
  elf.add(".strtab", std::string("\0norm\0", 6));
  if (reserves) elf.add(".nv.shared.reserved.0", "");
  if (shared_bytes > 0) elf.add(".nv.shared.norm", "", shared_bytes);
  return elf.file();
}

KernelNeeds needs_in(const std::string& image) {
  return kernels_in(image).at("norm").needs.value();
}

TEST(Occupancy, ReadsWhatAKernelNeedsFromItsCode) {
  // TransformerEngine 2.17's rmsnorm_bwd_general_kernel of 2,048 columns on 9.0 and 8.0, by
  // `cuobjdump -res-usage`.
  const KernelNeeds hopper = needs_in(cubin(96, 1024 + 64, true));
  EXPECT_EQ(hopper.registers_per_thread, 96);
  EXPECT_EQ(hopper.static_shared_bytes, 64);
  EXPECT_EQ(needs_in(cubin(94, 64, false)).static_shared_bytes, 64);
  EXPECT_EQ(needs_in(cubin(80, 0, true)).static_shared_bytes, 0);
}

TEST(Occupancy, KnowsNothingOfAKernelWhoseNumbersAreDamaged) {
  EXPECT_FALSE(kernels_in(cubin(1u << 31, 0, true)).at("norm").needs);
  const std::string whole = cubin(96, 64, true);
  for (size_t length = 0; length < whole.size(); ++length) kernels_in({whole.data(), length});
}

int by_nvidia(const CapabilityFacts& facts, const KernelNeeds& needs, int threads, size_t dynamic) {
  cudaOccDeviceProp device;
  device.computeMajor = facts.major;
  device.computeMinor = facts.minor;
  device.maxThreadsPerBlock = kThreadsPerBlock;
  device.maxThreadsPerMultiprocessor = facts.threads_per_multiprocessor;
  device.regsPerBlock = device.regsPerMultiprocessor = kRegistersPerMultiprocessor;
  device.warpSize = kWarpThreads;
  device.sharedMemPerBlock = kSharedBytesPerBlock;
  device.sharedMemPerMultiprocessor = facts.shared_bytes_per_multiprocessor;
  device.numSms = 1;
  device.sharedMemPerBlockOptin = facts.shared_bytes_per_block_optin;
  device.reservedSharedMemPerBlock = facts.reserved_shared_bytes_per_block;
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = kThreadsPerBlock;
  kernel.numRegs = needs.registers_per_thread;
  kernel.sharedSizeBytes = needs.static_shared_bytes;
  kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = facts.shared_bytes_per_block_optin;
  kernel.numBlockBarriers = 1;
  cudaOccDeviceState state;
  cudaOccResult result{};
  EXPECT_EQ(
      cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, dynamic),
      CUDA_OCC_SUCCESS);
  return result.activeBlocksPerMultiprocessor;
}

TEST(Occupancy, IsThatOfNvidiasHeader) {
  const auto expect_equal = [](const KernelNeeds& needs, int threads, size_t dynamic) {
    for (const auto& [major, minor] : {std::pair(8, 0), {8, 6}, {8, 9}, {9, 0}}) {
      const CapabilityFacts& facts = *find_capability(major, minor);
      EXPECT_EQ(resident_blocks(facts, needs, threads, dynamic),
                by_nvidia(facts, needs, threads, dynamic))
          << major << "." << minor << ", " << needs.registers_per_thread << " registers, "
          << threads << " threads, " << dynamic << " bytes";
    }
  };
  for (const int registers : {16, 32, 80, 96, 110, 161, 199, 255}) {
    for (const int threads : {32, 96, 128, 160, 256}) {
      expect_equal({registers, 0}, threads, 0);
      expect_equal({registers, 17920 - 1024}, threads, 8 * 1024);
    }
  }
}

}  // namespace
}  // namespace virtual_gpu
