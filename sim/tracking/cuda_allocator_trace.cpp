#include <c10/cuda/CUDACachingAllocator.h>

#include "sim/tracking/allocator_trace.h"

namespace sim {

namespace {

namespace cuda = c10::cuda::CUDACachingAllocator;

/// cuda::get() would need libc10_cuda.so at link time.
cuda::CUDAAllocator* allocator() {
  return static_cast<cuda::CUDAAllocator*>(c10::getDeviceAllocator(c10::DeviceType::CUDA));
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
          {"graph_capture_record_stream_reuse", config.graph_capture_record_stream_reuse},
          {"roundup_power2_divisions", divisions}};
}

}  // namespace

void trace_allocator(AllocatorSink sink) {
  allocator()->attachAllocatorTraceTracker(std::move(sink));
}

AllocatorState allocator_state() {
  cuda::SnapshotInfo snapshot = allocator()->snapshot({0, 0}, /*include_traces=*/false);
  return {.segments = std::move(snapshot.segments),
          .settings = settings_of(snapshot.config_metadata)};
}

}  // namespace sim
