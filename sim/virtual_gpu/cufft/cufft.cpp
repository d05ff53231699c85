#include <cstddef>
#include <map>
#include <mutex>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/device.h"

/// Fourier transforms, as PyTorch calls them: plans of many transforms with a work area that the
/// caller allocates. The area is assumed to hold the transformed elements once: its documentation
/// says only that it depends on the lengths, and at most eight times this.
namespace {

using cudaStream_t = CUstream_st*;

enum cufftResult { CUFFT_SUCCESS = 0, CUFFT_INVALID_PLAN = 1, CUFFT_NOT_SUPPORTED = 16 };

struct Plan {
  cudaStream_t stream = nullptr;
  long long elements = 0;  // complex ones, of all transforms
};

std::mutex mutex;
std::map<int, Plan> plans;  // under the mutex, as the next number is
int next_plan = 1;

Plan* find(int plan) {
  const auto place = plans.find(plan);
  return place == plans.end() ? nullptr : &place->second;
}

/// Bytes of a complex element: of cudaDataType's half, single, double, and brain floats.
size_t complex_bytes(int type) {
  constexpr int kDouble = 1, kComplexDouble = 5;
  constexpr int kHalf = 2, kComplexHalf = 6, kBrain = 14, kComplexBrain = 15;
  if (type == kDouble || type == kComplexDouble) return 16;
  if (type == kHalf || type == kComplexHalf || type == kBrain || type == kComplexBrain) return 4;
  return 8;
}

}  // namespace

extern "C" {

cufftResult cufftCreate(int* plan) {
  const std::lock_guard lock(mutex);
  *plan = next_plan++;
  plans[*plan] = {};
  return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(int plan) {
  const std::lock_guard lock(mutex);
  return plans.erase(plan) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult cufftSetAutoAllocation(int, int allocates) {
  return allocates == 0 ? CUFFT_SUCCESS : CUFFT_NOT_SUPPORTED;
}

cufftResult cufftSetWorkArea(int, void*) { return CUFFT_SUCCESS; }

cufftResult cufftSetStream(int plan, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (find(plan) == nullptr) return CUFFT_INVALID_PLAN;
  find(plan)->stream = stream;
  return CUFFT_SUCCESS;
}

cufftResult cufftXtMakePlanMany(int plan,
                                int rank,
                                long long* lengths,
                                long long*,
                                long long,
                                long long,
                                int,
                                long long*,
                                long long,
                                long long,
                                int,
                                long long batch,
                                size_t* work_bytes,
                                int type) {
  const std::lock_guard lock(mutex);
  Plan* const made = find(plan);
  if (made == nullptr) return CUFFT_INVALID_PLAN;
  made->elements = batch;
  for (int i = 0; i < rank; ++i) made->elements *= lengths[i];
  *work_bytes = static_cast<size_t>(made->elements) * complex_bytes(type);
  return CUFFT_SUCCESS;
}

cufftResult cufftXtExec(int plan, void*, void*, int) {
  Plan run;
  {
    const std::lock_guard lock(mutex);
    if (find(plan) == nullptr) return CUFFT_INVALID_PLAN;
    run = *find(plan);
  }
  static constexpr const char* kName = "vector_fft";
  static virtual_gpu::Kernel& kernel = [&]() -> virtual_gpu::Kernel& {
    virtual_gpu::kernels().add(kName, kName, nullptr);
    return virtual_gpu::kernels().find(kName);
  }();
  virtual_gpu::run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_KERNEL,
                                   .name = kName,
                                   .threads = static_cast<uint64_t>(run.elements),
                                   .address_count = -1},
                         .kernel = &kernel,
                         .gemm = {},
                         .effect = {}},
                        run.stream);
  return CUFFT_SUCCESS;
}
}
