// NVIDIA's management library, as programs ask it through pynvml and torch: how many devices there
// are, their names, memory and use, and how they are joined. A function that is not here is not
// found, which pynvml says.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "sim/virtual_gpu/cudart/device_attributes.h"
#include "sim/virtual_gpu/driver_version.h"
#include "sim/virtual_gpu/nvml/handle.h"

using virtual_gpu::device;
using namespace virtual_gpu::nvml;

namespace {

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

constexpr int kDegrees = 40;
constexpr unsigned kMilliwatts = 100'000;

Result give(const std::string& text, char* buffer, unsigned length) {
  if (text.size() >= length) return kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return kSuccess;
}

Memory memory_of(int ordinal) {
  const auto total = static_cast<unsigned long long>(device()->memory.capacity_bytes());
  const auto used = static_cast<unsigned long long>(device()->memory.used_bytes(ordinal));
  return {total, total - used, used};
}

std::string bus_id(int ordinal) {
  const cudaDeviceProp properties = virtual_gpu::device_properties(*device(), ordinal);
  char text[32];
  std::snprintf(text,
                sizeof text,
                "%08X:%02X:%02X.0",
                properties.pciDomainID,
                properties.pciBusID,
                properties.pciDeviceID);
  return text;
}

std::string uuid_text(int ordinal) {
  const cudaUUID_t uuid = virtual_gpu::device_properties(*device(), ordinal).uuid;
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return device() != nullptr ? kSuccess : kDriverNotLoaded; }
int nvmlInit() { return nvmlInit_v2(); }
int nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }
int nvmlShutdown() { return kSuccess; }

const char* nvmlErrorString(int result) {
  return result == kSuccess ? "Success" : "refused by Onerank's virtual GPU";
}

int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return give(virtual_gpu::kDriverVersion, text, length);
}
int nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  return give(std::string("13.") + virtual_gpu::kDriverVersion, text, length);
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return cudaDriverGetVersion(version) == cudaSuccess ? kSuccess : kDriverNotLoaded;
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (device() == nullptr) return kDriverNotLoaded;
  *count = static_cast<unsigned>(device()->spec.device_count);
  return kSuccess;
}
int nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* handle) {
  if (index >= kMostDevices || ordinal_of(handles + index) < 0) return kInvalidArgument;
  *handle = handles + index;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex(unsigned index, Handle* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

int nvmlDeviceGetHandleByUUID(const char* uuid, Handle* handle) {
  for (int i = 0; device() != nullptr && i < device()->spec.device_count; ++i) {
    if (uuid_text(i) == uuid) return nvmlDeviceGetHandleByIndex_v2(i, handle);
  }
  return kInvalidArgument;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, Handle* handle) {
  for (int i = 0; device() != nullptr && i < device()->spec.device_count; ++i) {
    // The domain may be written with four digits.
    const std::string known = bus_id(i);
    if (known == id || known.substr(4) == id) return nvmlDeviceGetHandleByIndex_v2(i, handle);
  }
  return kInvalidArgument;
}

int nvmlDeviceGetIndex(Handle handle, unsigned* index) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *index = static_cast<unsigned>(ordinal_of(handle));
  return kSuccess;
}
int nvmlDeviceGetMinorNumber(Handle handle, unsigned* minor) {
  return nvmlDeviceGetIndex(handle, minor);
}

int nvmlDeviceGetName(Handle handle, char* name, unsigned length) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  return give(device()->spec.name, name, length);
}

int nvmlDeviceGetUUID(Handle handle, char* uuid, unsigned length) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  return give(uuid_text(ordinal_of(handle)), uuid, length);
}

int nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo* info) {
  const int ordinal = ordinal_of(handle);
  if (ordinal < 0) return kInvalidArgument;
  const cudaDeviceProp properties = virtual_gpu::device_properties(*device(), ordinal);
  *info = {};
  info->domain = static_cast<unsigned>(properties.pciDomainID);
  info->bus = static_cast<unsigned>(properties.pciBusID);
  info->device = static_cast<unsigned>(properties.pciDeviceID);
  give(bus_id(ordinal), info->bus_id, sizeof info->bus_id);
  return give(bus_id(ordinal).substr(4), info->legacy_bus_id, sizeof info->legacy_bus_id);
}

int nvmlDeviceGetMemoryInfo(Handle handle, Memory* memory) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *memory = memory_of(ordinal_of(handle));
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo_v2(Handle handle, MemoryV2* memory) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  const Memory now = memory_of(ordinal_of(handle));
  *memory = {memory->version, now.total, 0, now.free, now.used};
  return kSuccess;
}

// Kernels take no time: the device is idle.
int nvmlDeviceGetUtilizationRates(Handle handle, Utilization* utilization) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *utilization = {0, 0};
  return kSuccess;
}
int nvmlDeviceGetTemperature(Handle handle, int, unsigned* degrees) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *degrees = kDegrees;
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(Handle handle, unsigned* milliwatts) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *milliwatts = kMilliwatts;
  return kSuccess;
}

int nvmlDeviceGetCudaComputeCapability(Handle handle, int* major, int* minor) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *major = device()->spec.capability_major;
  *minor = device()->spec.capability_minor;
  return kSuccess;
}

/// This process, once it has taken memory.
int nvmlDeviceGetComputeRunningProcesses_v3(Handle handle, unsigned* count, ProcessInfo* infos) {
  const int ordinal = ordinal_of(handle);
  if (ordinal < 0) return kInvalidArgument;
  const unsigned running = memory_of(ordinal).used > 0 ? 1 : 0;
  const bool has_room = *count >= running;
  *count = running;
  if (!has_room) return kInsufficientSize;
  constexpr unsigned kNoInstance = 0xFFFFFFFF;
  if (running > 0) {
    infos[0] = {static_cast<unsigned>(getpid()), memory_of(ordinal).used, kNoInstance, kNoInstance};
  }
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses(Handle handle, unsigned* count, ProcessInfo*) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *count = 0;  // its structure is of another size than today's
  return kSuccess;
}
}
