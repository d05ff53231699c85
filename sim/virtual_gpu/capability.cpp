#include "sim/virtual_gpu/capability.h"

namespace virtual_gpu {
namespace {

constexpr int kKiB = 1024;

// CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per Compute
// Capability"; reserved shared memory from the CUDA occupancy calculator. 10.7 (Rubin) is assumed
// to be as 10.3.
constexpr CapabilityFacts kTable[] = {
    // major, minor, threads, blocks, shared per SM, opt-in per block, reserved
    {7, 0, 2048, 32, 96 * kKiB, 96 * kKiB, 0},
    {7, 5, 1024, 16, 64 * kKiB, 64 * kKiB, 0},
    {8, 0, 2048, 32, 164 * kKiB, 163 * kKiB, kKiB},
    {8, 6, 1536, 16, 100 * kKiB, 99 * kKiB, kKiB},
    {8, 9, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB},
    {9, 0, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {10, 0, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {10, 3, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {10, 7, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {12, 0, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB},
};

}  // namespace

const CapabilityFacts* find_capability(int major, int minor) {
  for (const CapabilityFacts& facts : kTable) {
    if (facts.major == major && facts.minor == minor) return &facts;
  }
  return nullptr;
}

}  // namespace virtual_gpu
