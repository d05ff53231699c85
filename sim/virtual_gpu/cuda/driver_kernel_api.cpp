#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>

#include "sim/virtual_gpu/cuda/module.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/kernels/kernel_facts.h"

using virtual_gpu::device;

CUresult cuLaunchKernel(CUfunction function,
                        unsigned grid_x,
                        unsigned grid_y,
                        unsigned grid_z,
                        unsigned block_x,
                        unsigned block_y,
                        unsigned block_z,
                        unsigned dynamic_shared_bytes,
                        CUstream stream,
                        void** arguments,
                        void**) {
  const dim3 grid{grid_x, grid_y, grid_z};
  const dim3 block{block_x, block_y, block_z};
  const cudaError_t error =
      cudaLaunchKernel(function, grid, block, arguments, dynamic_shared_bytes, stream);
  // The driver has no code for a bad configuration.
  return error == cudaErrorInvalidConfiguration ? CUDA_ERROR_INVALID_VALUE
                                                : static_cast<CUresult>(error);
}

CUresult cuLaunchCooperativeKernel(CUfunction function,
                                   unsigned grid_x,
                                   unsigned grid_y,
                                   unsigned grid_z,
                                   unsigned block_x,
                                   unsigned block_y,
                                   unsigned block_z,
                                   unsigned dynamic_shared_bytes,
                                   CUstream stream,
                                   void** arguments) {
  return cuLaunchKernel(function,
                        grid_x,
                        grid_y,
                        grid_z,
                        block_x,
                        block_y,
                        block_z,
                        dynamic_shared_bytes,
                        stream,
                        arguments,
                        nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config,
                          CUfunction function,
                          void** arguments,
                          void** extra) {
  return cuLaunchKernel(function,
                        config->gridDimX,
                        config->gridDimY,
                        config->gridDimZ,
                        config->blockDimX,
                        config->blockDimY,
                        config->blockDimZ,
                        config->sharedMemBytes,
                        config->hStream,
                        arguments,
                        extra);
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  cudaFuncAttributes facts;
  const cudaError_t error = cudaFuncGetAttributes(&facts, function);
  if (error != cudaSuccess) return static_cast<CUresult>(error);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = facts.maxThreadsPerBlock;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = facts.numRegs;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = facts.binaryVersion;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = facts.maxDynamicSharedSizeBytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                     CUfunction function,
                                                     int threads,
                                                     size_t dynamic_shared_bytes) {
  return static_cast<CUresult>(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, function, threads, dynamic_shared_bytes));
}

// A tensor map is read by kernels only: here it tells what memory it was made for.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map,
                                CUtensorMapDataType,
                                cuuint32_t,
                                void* address,
                                const cuuint64_t*,
                                const cuuint64_t*,
                                const cuuint32_t*,
                                const cuuint32_t*,
                                CUtensorMapInterleave,
                                CUtensorMapSwizzle,
                                CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &address, sizeof address);
  return CUDA_SUCCESS;
}
