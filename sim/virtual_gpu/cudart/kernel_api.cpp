#include <cuda_runtime_api.h>

#include <cstring>
#include <optional>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"
#include "sim/virtual_gpu/cudart/launch_arguments.h"
#include "sim/virtual_gpu/cudart/stream.h"
#include "sim/virtual_gpu/kernels/kernel_bytes.h"
#include "sim/virtual_gpu/kernels/kernel_facts.h"

using virtual_gpu::CodeVersion;
using virtual_gpu::device;
using virtual_gpu::Kernel;
using virtual_gpu::remember;

namespace {

/// Code found at run time was compiled for the device.
std::optional<CodeVersion> code_version(const Kernel& kernel) {
  const int own = virtual_gpu::architecture(device()->facts);
  if (kernel.code == nullptr) return CodeVersion{.binary = own, .ptx = own};
  return kernel.code->version_for(device()->facts);
}

virtual_gpu::KernelNeeds needs_of(const Kernel& kernel) {
  const auto needs = kernel.code == nullptr ? kernel.found.needs
                                            : kernel.code->needs_of(kernel.name, device()->facts);
  return needs.value_or(virtual_gpu::kAssumedNeeds);
}

/// Code loaded at run time was read when it was loaded; to read that of a library takes time.
bool tells_arguments(const Kernel& kernel) {
  const auto& log = virtual_gpu::work_log();
  return log.has_event_sink() && (kernel.code == nullptr || log.wants_arguments());
}

void run_launch(Kernel& kernel,
                const virtual_gpu::LaunchShape& shape,
                void* const* arguments,
                cudaStream_t stream) {
  virtual_gpu::Event event{
      .kind = ONERANK_VIRTUAL_GPU_KERNEL, .name = kernel.name, .blocks = 1, .address_count = -1};
  for (const auto size : shape.grid) event.blocks *= static_cast<uint64_t>(size);
  event.threads = event.blocks;
  for (const auto size : shape.block) event.threads *= static_cast<uint64_t>(size);
  const auto* const parameters =
      tells_arguments(kernel) ? virtual_gpu::parameters_of(kernel, device()->facts) : nullptr;
  const auto known = virtual_gpu::launch_arguments(parameters, arguments, device()->memory);
  if (known) {
    event.bytes = virtual_gpu::bytes_told_by({kernel.name, *parameters, arguments, shape});
    event.addresses = known->addresses.data();
    event.address_count = static_cast<int64_t>(known->addresses.size());
    event.numbers = known->numbers.data();
    event.number_count = static_cast<int64_t>(known->numbers.size());
  }
  virtual_gpu::run_work({.event = event, .kernel = &kernel, .gemm = {}, .effect = {}}, stream);
}

cudaError_t launch(const void* function,
                   dim3 grid,
                   dim3 block,
                   void* const* arguments,
                   size_t dynamic_shared_bytes,
                   cudaStream_t stream) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  const virtual_gpu::LaunchShape shape{
      {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, dynamic_shared_bytes};
  if (!virtual_gpu::can_launch(device()->facts, shape)) {
    return remember(cudaErrorInvalidConfiguration);
  }
  Kernel& kernel = virtual_gpu::kernels().find(function);
  if (!code_version(kernel)) return remember(cudaErrorNoKernelImageForDevice);
  run_launch(kernel, shape, arguments, stream);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaLaunchKernel(const void* function,
                             dim3 grid,
                             dim3 block,
                             void** arguments,
                             size_t dynamic_shared_bytes,
                             cudaStream_t stream) {
  return launch(function, grid, block, arguments, dynamic_shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function,
                                        dim3 grid,
                                        dim3 block,
                                        void** arguments,
                                        size_t dynamic_shared_bytes,
                                        cudaStream_t stream) {
  return launch(function, grid, block, arguments, dynamic_shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config,
                                const void* function,
                                void** arguments) {
  return launch(function,
                config->gridDim,
                config->blockDim,
                arguments,
                config->dynamicSmemBytes,
                config->stream);
}

/// The launch that nvcc's generated code uses since CUDA 12.8: by handle, which here is the
/// function.
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel,
                                          dim3 grid,
                                          dim3 block,
                                          void** arguments,
                                          size_t dynamic_shared_bytes,
                                          cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, dynamic_shared_bytes, stream);
}

extern "C" cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  const Kernel& kernel = virtual_gpu::kernels().find(function);
  const auto version = code_version(kernel);
  if (!version) return remember(cudaErrorNoKernelImageForDevice);
  const virtual_gpu::KernelNeeds needs = needs_of(kernel);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = virtual_gpu::kThreadsPerBlock;
  attributes->numRegs = needs.registers_per_thread;
  attributes->sharedSizeBytes = needs.static_shared_bytes;
  attributes->ptxVersion = version->ptx;
  attributes->binaryVersion = version->binary;
  attributes->maxDynamicSharedSizeBytes = device()->facts.shared_bytes_per_block_optin;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, size_t dynamic_shared_bytes, unsigned) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  if (threads <= 0) return remember(cudaErrorInvalidValue);
  *blocks = virtual_gpu::resident_blocks(device()->facts,
                                         needs_of(virtual_gpu::kernels().find(function)),
                                         threads,
                                         dynamic_shared_bytes);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void* function,
                                                          int threads,
                                                          size_t dynamic_shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, threads, dynamic_shared_bytes, cudaOccupancyDefault);
}
