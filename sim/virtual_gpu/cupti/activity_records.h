#pragma once

#include <cstdint>

/// Records of CUPTI's activity interface, as cupti_activity.h lays them out. Later versions of
/// CUPTI append fields, which kineto does not read: it takes the oldest versions that have what it
/// needs.
namespace virtual_gpu {

enum ActivityKind : uint32_t {
  kActivityMemcpy = 1,
  kActivityMemset = 2,
  kActivityRuntime = 5,
  kActivityConcurrentKernel = 10,
  kActivityExternalCorrelation = 39,
};

/// CUpti_ActivityKernel4.
struct KernelActivity {
  uint32_t kind = kActivityConcurrentKernel;
  uint8_t cache_config = 0;
  uint8_t shared_memory_config = 0;
  uint16_t registers_per_thread = 0;
  uint32_t partitioned_cache_requested = 0;
  uint32_t partitioned_cache_executed = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t completed = 0;
  uint32_t device = 0;
  uint32_t context = 0;
  uint32_t stream = 0;
  /// Not known; kineto computes an occupancy from them, which cannot be of no threads.
  int32_t grid[3] = {1, 1, 1};
  int32_t block[3] = {1, 1, 1};
  int32_t static_shared_memory = 0;
  int32_t dynamic_shared_memory = 0;
  uint32_t local_memory_per_thread = 0;
  uint32_t local_memory_total = 0;
  uint32_t correlation = 0;
  int64_t grid_id = 0;
  const char* name = nullptr;
  void* reserved = nullptr;
  uint64_t queued = 0;
  uint64_t submitted = 0;
  uint8_t launch_type = 0;
  uint8_t carveout[2] = {};
  uint8_t padding = 0;
  uint32_t shared_memory_executed = 0;
};

/// CUpti_ActivityMemcpy.
struct CopyActivity {
  uint32_t kind = kActivityMemcpy;
  uint8_t copy_kind = 0;    ///< CUpti_ActivityMemcpyKind
  uint8_t source_kind = 0;  ///< CUpti_ActivityMemoryKind
  uint8_t destination_kind = 0;
  uint8_t flags = 0;
  uint64_t bytes = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t device = 0;
  uint32_t context = 0;
  uint32_t stream = 0;
  uint32_t correlation = 0;
  uint32_t runtime_correlation = 0;
  uint32_t padding = 0;
  void* reserved = nullptr;
};

/// CUpti_ActivityMemset.
struct FillActivity {
  uint32_t kind = kActivityMemset;
  uint32_t value = 0;
  uint64_t bytes = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t device = 0;
  uint32_t context = 0;
  uint32_t stream = 0;
  uint32_t correlation = 0;
  uint16_t flags = 0;
  uint16_t memory_kind = 0;
  uint32_t padding = 0;
  void* reserved = nullptr;
};

/// CUpti_ActivityAPI.
struct CallActivity {
  uint32_t kind = kActivityRuntime;
  uint32_t function = 0;  ///< CUpti_runtime_api_trace_cbid
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t process = 0;
  uint32_t thread = 0;
  uint32_t correlation = 0;
  uint32_t returned = 0;
};

/// CUpti_ActivityExternalCorrelation.
struct CorrelationActivity {
  uint32_t kind = kActivityExternalCorrelation;
  uint32_t external_kind = 0;
  uint64_t external_id = 0;
  uint32_t correlation = 0;
  uint32_t reserved = 0;
};

}  // namespace virtual_gpu
