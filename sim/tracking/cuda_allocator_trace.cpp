#include <c10/cuda/CUDACachingAllocator.h>

#include <nlohmann/json.hpp>

#include "sim/tracking/allocator_trace.h"

namespace sim {

namespace {

namespace cuda = c10::cuda::CUDACachingAllocator;

cuda::CUDAAllocator* allocator() {
#if TORCH_VERSION_MINOR < 9
  return cuda::get();
#else  // without libc10_cuda.so at link time
  return static_cast<cuda::CUDAAllocator*>(c10::getDeviceAllocator(c10::DeviceType::CUDA));
#endif
}

/// A setting that came with torch 2.9.
template <class Config>
bool capture_reuses_streams(const Config& config) {
  if constexpr (requires { config.graph_capture_record_stream_reuse; }) {
    return config.graph_capture_record_stream_reuse;
  }
  return false;
}

estimator::Json settings_of(const cuda::AllocatorConfigInfo& config) {
  estimator::Json divisions = estimator::Json::object();
  for (std::size_t i = 0; i < config.roundup_power2_divisions.size(); ++i) {
    divisions[std::to_string(std::size_t{1} << i)] = config.roundup_power2_divisions[i];
  }
  return {{"PYTORCH_CUDA_ALLOC_CONF", config.last_allocator_settings},
          {"max_split_size", static_cast<int64_t>(config.max_split_size)},
          {"garbage_collection_threshold", config.garbage_collection_threshold},
          {"expandable_segments", config.expandable_segments},
          {"pinned_num_register_threads", config.pinned_num_register_threads},
          {"release_lock_on_cudamalloc", config.release_lock_on_malloc},
          {"pinned_use_cuda_host_register", config.pinned_use_host_register},
          {"graph_capture_record_stream_reuse", capture_reuses_streams(config)},
          {"roundup_power2_divisions", divisions}};
}

}  // namespace

void trace_allocator(AllocatorSink sink) {
  allocator()->attachAllocatorTraceTracker(std::move(sink));
}

AllocatorState allocator_state() {
  cuda::SnapshotInfo snapshot = allocator()->snapshot();
  return {.segments = std::move(snapshot.segments),
          .settings = settings_of(snapshot.config_metadata)};
}

}  // namespace sim
