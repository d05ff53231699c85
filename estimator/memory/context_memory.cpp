#include "estimator/memory/context_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "estimator/base/units.h"

namespace estimator {
namespace {

constexpr int64_t kFirstTensorBytes = 287'047'680;   // pytorch/pytorch pull request 86509, lazy
constexpr int64_t kLateModuleBytes = 300 * kMiB;     // of cuBLASLt, cuDNN, attention kernels
constexpr int64_t kEagerContextBytes = 1573 * kMiB;  // bigscience, A100
constexpr int64_t kEagerLowBytes = 666'632'192;      // pytorch/pytorch pull request 86509, eager

}  // namespace

MemoryTerm library_memory(const Gpu& gpu) {
  constexpr int64_t kHandles = 2, kPrintfFifo = kMiB, kMallocHeap = 8 * kMiB;
  constexpr int64_t kResidentThreads = 2048;  // of a multiprocessor
  const int capability = gpu.major_capability();
  const int64_t workspace = (capability == kHopper || capability == kBlackwell ? 32 : 4) * kMiB;
  const int64_t value = kHandles * workspace;
  const int64_t local = kResidentThreads * gpu.multiprocessors * kKiB;
  return {.name = "CUDA libraries",
          .value_bytes = value,
          .low_bytes = 0,
          .high_bytes = value + kPrintfFifo + kMallocHeap + local,
          .source = Source::kAssumed,
          .note = fmt::format("{} cuBLAS handles x {} MiB, their default workspace (cuBLAS manual, "
                              "cublasSetWorkspace)",
                              kHandles,
                              workspace / kMiB)};
}

MemoryTerm context_memory(const Gpu& gpu, ModuleLoading loading) {
  if (loading == ModuleLoading::kEager) {
    return {
        .name = "CUDA context, eager",
        .value_bytes = kEagerContextBytes,
        .low_bytes = kEagerLowBytes,
        .high_bytes = kEagerContextBytes + kLateModuleBytes,
        .source = Source::kPublished,
        .note =
            "nvidia-smi for a first tensor on A100 40GB, CUDA 11, all modules loaded (bigscience)"};
  }
  return {.name = "CUDA context",
          .value_bytes = gpu.context_bytes,
          .low_bytes = std::min(kFirstTensorBytes, gpu.context_bytes),
          .high_bytes = gpu.context_bytes + kLateModuleBytes,
          .source = Source::kAssumed,
          .note = gpu.context_source};
}

}  // namespace estimator
