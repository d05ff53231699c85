#include <cuda.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/peers.h"
#include "sim/virtual_gpu/cudart/stream.h"

using virtual_gpu::device;

/// A context: the primary one of its device, the only kind there is. It is always active, as it is
/// in a process that has used the runtime.
struct CUctx_st {
  int device;
};

namespace {

CUctx_st* primary_context(int ordinal) {
  static std::vector<CUctx_st>* const contexts = [] {
    auto* all = new std::vector<CUctx_st>;
    for (int i = 0; i < device()->spec.device_count; ++i) all->push_back({i});
    return all;
  }();
  return &contexts->at(ordinal);
}

bool exists(CUdevice ordinal) {
  return device() != nullptr && ordinal >= 0 && ordinal < device()->spec.device_count;
}

}  // namespace

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* is_active) {
  if (!exists(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = CU_CTX_SCHED_AUTO;
  *is_active = 1;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  if (!exists(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *context = primary_context(ordinal);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return exists(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *context = primary_context(virtual_gpu::current_device());
  return CUDA_SUCCESS;
}

// Without a context the runtime would take its device's one again at the next call: so it stays.
CUresult cuCtxSetCurrent(CUcontext context) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (context != nullptr) virtual_gpu::set_current_device(context->device);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* ordinal) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *ordinal = virtual_gpu::current_device();
  return CUDA_SUCCESS;
}

// TransformerEngine asks for it before it encodes tensor maps (checkCuDriverContext in
// transformer_engine/common/common.cu).
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *context = primary_context(virtual_gpu::device_of(stream));
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12050  // its first
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  *green = nullptr;
  return cuStreamGetCtx(stream, context);
}
#endif

CUresult cuCtxSynchronize() { return static_cast<CUresult>(cudaDeviceSynchronize()); }

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return static_cast<CUresult>(virtual_gpu::enable_peer_access(peer->device));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return static_cast<CUresult>(virtual_gpu::disable_peer_access(peer->device));
}
