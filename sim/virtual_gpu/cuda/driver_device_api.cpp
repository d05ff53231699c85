#include <cuda.h>

#include <cstdio>
#include <cstring>

#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/device_attributes.h"
#include "sim/virtual_gpu/cudart/peers.h"
#include "sim/virtual_gpu/generated_stub.h"

using virtual_gpu::device;

namespace {

CUresult check_ordinal(int ordinal) {
  if (device() == nullptr) return CUDA_ERROR_NO_DEVICE;
  const bool exists = ordinal >= 0 && ordinal < device()->spec.device_count;
  return exists ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult cuInit(unsigned) { return device() != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE; }

CUresult cuDriverGetVersion(int* version) {
  return static_cast<CUresult>(cudaDriverGetVersion(version));
}

CUresult cuDeviceGetCount(int* count) {
  if (device() == nullptr) return CUDA_ERROR_NO_DEVICE;
  *count = device()->spec.device_count;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* handle, int ordinal) {
  const CUresult error = check_ordinal(ordinal);
  if (error == CUDA_SUCCESS) *handle = ordinal;
  return error;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  const CUresult error = check_ordinal(ordinal);
  if (error == CUDA_SUCCESS) std::snprintf(name, length, "%s", device()->spec.name.c_str());
  return error;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice ordinal) {
  const CUresult error = check_ordinal(ordinal);
  if (error == CUDA_SUCCESS) *bytes = device()->memory.capacity_bytes();
  return error;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  const CUresult error = check_ordinal(ordinal);
  if (error == CUDA_SUCCESS) *uuid = virtual_gpu::device_properties(*device(), ordinal).uuid;
  return error;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  if (const CUresult error = check_ordinal(ordinal); error != CUDA_SUCCESS) return error;
  const auto known = virtual_gpu::device_attribute(*device(), ordinal, attribute);
  if (!known) {
    char call[64];
    std::snprintf(call, sizeof call, "cuDeviceGetAttribute(attribute %d)", attribute);
    virtual_gpu::report_refusal(call, "CUDA_ERROR_NOT_SUPPORTED (801)");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *value = *known;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
  if (check_ordinal(ordinal) != CUDA_SUCCESS || check_ordinal(peer) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *can = virtual_gpu::can_access_peer(*device(), ordinal, peer);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value,
                                 CUdevice_P2PAttribute attribute,
                                 CUdevice ordinal,
                                 CUdevice peer) {
  return static_cast<CUresult>(
      cudaDeviceGetP2PAttribute(value, static_cast<cudaDeviceP2PAttr>(attribute), ordinal, peer));
}
