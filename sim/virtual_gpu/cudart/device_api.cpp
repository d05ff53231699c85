#include <cuda_runtime_api.h>

#include <cstdio>

#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/device_attributes.h"
#include "sim/virtual_gpu/cudart/last_error.h"
#include "sim/virtual_gpu/cudart/peers.h"
#include "sim/virtual_gpu/cudart/stream.h"
#include "sim/virtual_gpu/generated_stub.h"

using virtual_gpu::device;
using virtual_gpu::remember;

namespace {

// The runtime of the major version that torch was built for, and a driver just as old.
constexpr int kVersion = CUDART_VERSION / 1000 * 1000;

cudaError_t check_ordinal(int ordinal) {
  if (device() == nullptr) return cudaErrorInitializationError;
  const bool exists = ordinal >= 0 && ordinal < device()->spec.device_count;
  return exists ? cudaSuccess : cudaErrorInvalidDevice;
}

}  // namespace

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device() != nullptr ? device()->spec.device_count : 0;
  return remember(device() != nullptr ? cudaSuccess : cudaErrorInitializationError);
}

cudaError_t cudaGetDevice(int* ordinal) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  *ordinal = virtual_gpu::current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  return remember(virtual_gpu::set_current_device(ordinal) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaInitDevice(int ordinal, unsigned, unsigned) {
  return remember(check_ordinal(ordinal));
}

cudaError_t cudaDeviceSynchronize() {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  virtual_gpu::host_waits_for_device();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  const cudaError_t error = check_ordinal(ordinal);
  if (error == cudaSuccess) *properties = virtual_gpu::device_properties(*device(), ordinal);
  return remember(error);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  if (const cudaError_t error = check_ordinal(ordinal); error != cudaSuccess) {
    return remember(error);
  }
  const auto known = virtual_gpu::device_attribute(*device(), ordinal, attribute);
  if (!known) {
    char call[64];
    std::snprintf(call, sizeof call, "cudaDeviceGetAttribute(attribute %d)", attribute);
    virtual_gpu::report_refusal(call, "cudaErrorNotSupported (801)");
    return remember(cudaErrorNotSupported);
  }
  *value = *known;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int ordinal) {
  const cudaError_t error = check_ordinal(ordinal);
  if (error == cudaSuccess) std::snprintf(text, length, "0000:%02x:00.0", ordinal);
  return remember(error);
}

cudaError_t cudaDeviceGetByPCIBusId(int* ordinal, const char* text) {
  unsigned bus = 0;
  const bool is_ours = std::sscanf(text, "0000:%x:00.0", &bus) == 1;
  if (!is_ours || check_ordinal(static_cast<int>(bus)) != cudaSuccess) {
    return remember(cudaErrorInvalidDevice);
  }
  *ordinal = static_cast<int>(bus);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  if (check_ordinal(ordinal) != cudaSuccess || check_ordinal(peer) != cudaSuccess) {
    return remember(cudaErrorInvalidDevice);
  }
  *can = virtual_gpu::can_access_peer(*device(), ordinal, peer);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int* value,
                                      cudaDeviceP2PAttr attribute,
                                      int ordinal,
                                      int peer) {
  if (check_ordinal(ordinal) != cudaSuccess || check_ordinal(peer) != cudaSuccess) {
    return remember(cudaErrorInvalidDevice);
  }
  const auto known = virtual_gpu::peer_attribute(*device(), attribute, ordinal, peer);
  if (!known) return remember(cudaErrorInvalidValue);
  *value = *known;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  if (flags != 0) return remember(cudaErrorInvalidValue);
  return remember(virtual_gpu::enable_peer_access(peer));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (device() == nullptr) return remember(cudaErrorInitializationError);
  return remember(virtual_gpu::disable_peer_access(peer));
}
