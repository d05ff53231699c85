#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace virtual_gpu {

/// The environment variable that tells a process which GPU to simulate.
inline constexpr const char* kEnvironmentVariable = "ONERANK_VIRTUAL_GPU";

/// The path of a file to which functions without an answer are appended, a line each: "name()", or
/// "name(): the way out". Without it they are only told on stderr.
inline constexpr const char* kRefusalsVariable = "ONERANK_VIRTUAL_GPU_REFUSALS";

/// The GPU to simulate. Facts that follow from its compute capability are in capability.h.
struct VirtualGpuSpec {
  std::string name;          // as cudaGetDeviceProperties reports it, e.g. "NVIDIA H100 80GB HBM3"
  int capability_major = 0;  // compute capability, e.g. 9 and 0
  int capability_minor = 0;
  int multiprocessors = 0;    // streaming multiprocessors
  int64_t memory_bytes = 0;   // total memory of one device, as cudaMemGetInfo reports it
  int l2_bytes = 0;           // L2 cache, as cudaDeviceProp::l2CacheSize has it
  int64_t outside_bytes = 0;  // the part that a process holds from its start, outside any
                              // allocator: CUDA's context and libraries
  int device_count = 1;       // equal devices in this process
  int nvlinks = 0;            // NVLink connections of a device; the devices then reach each other
  int board_watts = 0;        // the power limit of its board; 0: not known
  /// True: an event has happened when the host has waited for it (events=ordered). False: it has
  /// happened as soon as it is recorded (events=immediate).
  bool ordered_events = false;

  bool operator==(const VirtualGpuSpec&) const = default;
};

/// The value of ONERANK_VIRTUAL_GPU for `spec`, e.g.
/// "name=NVIDIA H100 80GB HBM3;capability=9.0;multiprocessors=132;memory_bytes=85029158912;
/// l2_bytes=52428800;outside_bytes=0;devices=1;nvlinks=18;board_watts=700;events=immediate". Throws
/// std::invalid_argument if parse() would not return `spec` for it.
std::string to_environment(const VirtualGpuSpec& spec);

/// Reads what to_environment() writes. Every key must be given once, in any order, and no other
/// key. Throws std::invalid_argument, whose message names the key and the value.
VirtualGpuSpec parse(std::string_view text);

}  // namespace virtual_gpu
