#include "comm_stub/nccl/values.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "comm_stub/nccl/communicator.h"
#include "comm_stub/nccl/cuda_runtime.h"
#include "comm_stub/nccl/device_values.h"
#include "comm_stub/nccl/nccl_control.h"
#include "comm_stub/nccl/reductions.h"

namespace nccl {
namespace {

/// Of the virtual GPU (sim/virtual_gpu/control.h); null on a real one.
using Peek = int (*)(const void* address, uint64_t bytes, void* value);
using Poke = void (*)(void* address, uint64_t bytes, const void* value);
using Forget = void (*)(const void* address, uint64_t bytes, uint64_t before);

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

std::atomic<bool> memory_was_called_real = false;

bool memory_is_real() {
  static const bool has_no_virtual_gpu = find<Peek>("onerank_virtual_gpu_peek") == nullptr;
  return has_no_virtual_gpu || memory_was_called_real;
}

ncclResult_t result_of(cudaError_t error) {
  if (error == cudaSuccess) return ncclSuccess;
  return refuse(ncclUnhandledCudaError, cuda().error_string(error));
}

ncclResult_t copy_bytes(void* destination, const void* source, size_t bytes, cudaStream_t stream) {
  if (destination == source || bytes == 0) return ncclSuccess;
  return result_of(
      cuda().memcpy_async(destination, source, bytes, cudaMemcpyDeviceToDevice, stream));
}

/// What the virtual GPU knows of `destination`, which holds one rank's values, is reduced.
void reduce_known(void* destination, const Buffer& source, ncclRedOp_t operation, int ranks) {
  static const auto peek = find<Peek>("onerank_virtual_gpu_peek");
  static const auto poke = find<Poke>("onerank_virtual_gpu_poke");
  static const auto forget = find<Forget>("onerank_virtual_gpu_forget");
  if (source.bytes() <= kLongestReducedBytes && operation < ncclNumOps) {
    std::vector<char> bytes(source.bytes());
    if (peek(destination, bytes.size(), bytes.data()) != 0 &&
        reduce_bytes(bytes.data(), bytes.size(), source.type.name, operation, ranks)) {
      poke(destination, bytes.size(), bytes.data());
      return;
    }
  }
  forget(destination, source.bytes(), UINT64_MAX);
}

}  // namespace

ncclResult_t copy(void* destination, const Buffer& source, cudaStream_t stream) {
  return copy_bytes(destination, source.address, source.bytes(), stream);
}

ncclResult_t spread(void* destination, const Buffer& own, int slots, cudaStream_t stream) {
  // Of a large buffer the virtual GPU knows nothing: one copy says so as well.
  if (!memory_is_real() && own.bytes() > kLongestReducedBytes) slots = 1;
  ncclResult_t result = copy(destination, own, stream);
  // What is there, once more behind it: a thousand slots are ten copies.
  for (int filled = 1; result == ncclSuccess && filled < slots; filled *= 2) {
    const size_t more = std::min(filled, slots - filled) * own.bytes();
    result = copy_bytes(
        static_cast<char*>(destination) + filled * own.bytes(), destination, more, stream);
  }
  return result;
}

ncclResult_t receive(void* destination, const Buffer& buffer, cudaStream_t stream) {
  if (!memory_is_real() || buffer.elements == 0) return ncclSuccess;
  return result_of(cuda().memset_async(destination, 0, buffer.bytes(), stream));
}

ncclResult_t reduce(void* destination,
                    const Buffer& source,
                    ncclRedOp_t operation,
                    int ranks,
                    cudaStream_t stream) {
  const ncclResult_t copied = copy(destination, source, stream);
  if (copied != ncclSuccess || source.elements == 0) return copied;
  if (!memory_is_real()) {
    const bool is_scaled = ranks > 1 && operation >= ncclNumOps;  // by a factor that is not known
    if (is_scaled || changes_values(operation, ranks)) {
      reduce_known(destination, source, operation, ranks);
    }
    return ncclSuccess;
  }
  if (!changes_values(operation, ranks) || source.bytes() > kLongestReducedBytes) return copied;
  return reduce_on_host(destination, source, operation, ranks, stream);
}

}  // namespace nccl

extern "C" void onerank_nccl_set_memory_is_real(int is_real) {
  nccl::memory_was_called_real = is_real != 0;
}
