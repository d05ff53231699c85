#include "comm_stub/nccl/device_values.h"

#include <mutex>
#include <vector>

#include "comm_stub/nccl/cuda_runtime.h"
#include "comm_stub/nccl/device_reductions.h"
#include "comm_stub/nccl/nccl_communicator.h"

namespace nccl {
namespace {

/// A reduction that is under way, and its page-locked memory.
struct Job {
  char* memory = nullptr;  // kLongestReducedBytes
  size_t bytes = 0;
  const DataType* type = nullptr;
  Reduction reduction;
};

/// Those that are not under way. They are used again and never given back.
class IdleJobs {
 public:
  /// Null if the host has no more memory.
  Job* take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Job* const reduction = idle_.back();
        idle_.pop_back();
        return reduction;
      }
    }
    void* memory = nullptr;
    if (cuda().malloc_host(&memory, kLongestReducedBytes) != cudaSuccess) return nullptr;
    return new Job{.memory = static_cast<char*>(memory)};
  }
  void give_back(Job* reduction) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(reduction);
  }

 private:
  std::mutex mutex_;
  std::vector<Job*> idle_;
};

/// Never destroyed: streams still work while a program ends.
IdleJobs& idle() {
  static auto* const idle = new IdleJobs;
  return *idle;
}

// These two are called by the stream.
void reduce(void* argument) {
  auto* const job = static_cast<Job*>(argument);
  reduce_bytes(job->memory, job->bytes, *job->type, job->reduction);
}
void give_back(void* argument) { idle().give_back(static_cast<Job*>(argument)); }

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cuda().is_capturing(stream, &status) != cudaSuccess ||
         status != cudaStreamCaptureStatusNone;
}

}  // namespace

ncclResult_t reduce_on_host(void* address,
                            const Buffer& buffer,
                            const Reduction& reduction,
                            cudaStream_t stream) {
  if (is_captured(stream)) return ncclSuccess;
  Job* const job = idle().take();
  if (job == nullptr) return refuse(ncclUnhandledCudaError, "no page-locked memory");
  job->bytes = buffer.bytes();
  job->type = &buffer.type;
  job->reduction = reduction;
  for (const cudaError_t error :
       {cuda().memcpy_async(job->memory, address, job->bytes, cudaMemcpyDeviceToHost, stream),
        cuda().launch_host_function(stream, reduce, job),
        cuda().memcpy_async(address, job->memory, job->bytes, cudaMemcpyHostToDevice, stream),
        cuda().launch_host_function(stream, give_back, job)}) {
    if (error != cudaSuccess) return refuse(ncclUnhandledCudaError, cuda().error_string(error));
  }
  return ncclSuccess;
}

}  // namespace nccl
