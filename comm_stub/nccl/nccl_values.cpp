#include "comm_stub/nccl/nccl_values.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include "comm_stub/nccl/cuda_runtime.h"
#include "comm_stub/nccl/device_reductions.h"
#include "comm_stub/nccl/device_values.h"
#include "comm_stub/nccl/nccl_communicator.h"
#include "comm_stub/nccl/nccl_control.h"
#include "comm_stub/nccl/own_operations.h"
#include "sim/virtual_gpu/find_control.h"

namespace nccl {
namespace {

std::atomic<bool> memory_was_called_real = false;

bool memory_is_real() {
  static const bool has_no_virtual_gpu = ONERANK_FIND_CONTROL(onerank_virtual_gpu_peek) == nullptr;
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

/// Empty where the factor is not known.
std::optional<Reduction> reduction_of(ncclRedOp_t operation, int ranks) {
  if (operation < ncclNumOps) return Reduction{operation, ranks};
  static const auto peek = ONERANK_FIND_CONTROL(onerank_virtual_gpu_peek);
  const ScaledSum sum = find_operation(operation).value();
  if (sum.on_device == nullptr) return Reduction{ncclSum, ranks, sum.factor};
  std::array<char, sizeof(double)> number{};
  const bool is_known =
      !memory_is_real() && peek(sum.on_device, sum.type->bytes, number.data()) != 0;
  if (!is_known) return std::nullopt;
  return Reduction{ncclSum, ranks, number_at(number.data(), *sum.type)};
}

/// What the virtual GPU knows of `destination`, which holds one rank's values, is reduced.
void reduce_known(void* destination,
                  const Buffer& source,
                  const std::optional<Reduction>& reduction) {
  static const auto peek = ONERANK_FIND_CONTROL(onerank_virtual_gpu_peek);
  static const auto poke = ONERANK_FIND_CONTROL(onerank_virtual_gpu_poke);
  static const auto send = ONERANK_FIND_CONTROL(onerank_virtual_gpu_send);
  static const auto forget = ONERANK_FIND_CONTROL(onerank_virtual_gpu_forget);
  std::vector<char> bytes(source.bytes() <= kLongestReducedBytes ? source.bytes() : 0);
  const int known = bytes.empty() ? 0 : peek(destination, bytes.size(), bytes.data());
  if (!reduction || known == 0) return forget(destination, source.bytes(), UINT64_MAX);
  reduce_bytes(bytes.data(), bytes.size(), source.type, *reduction);
  (known == ONERANK_VIRTUAL_GPU_OF_THE_HOST ? send : poke)(destination, bytes.size(), bytes.data());
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
  const auto reduction = reduction_of(operation, ranks);
  if (reduction && !changes_values(*reduction)) return ncclSuccess;
  if (!memory_is_real()) {
    reduce_known(destination, source, reduction);
    return ncclSuccess;
  }
  if (!reduction || source.bytes() > kLongestReducedBytes) return ncclSuccess;
  return reduce_on_host(destination, source, *reduction, stream);
}

}  // namespace nccl

extern "C" void onerank_nccl_set_memory_is_real(int is_real) {
  nccl::memory_was_called_real = is_real != 0;
}
