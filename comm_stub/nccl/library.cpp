#include <atomic>
#include <string>

#include "comm_stub/nccl/calls.h"
#include "comm_stub/nccl/cuda_runtime.h"
#include "comm_stub/nccl/device_reductions.h"
#include "comm_stub/nccl/nccl_communicator.h"
#include "comm_stub/nccl/own_operations.h"

/// What is no communicator and no collective: versions, errors, groups of calls, operations, and
/// memory that is known to the network.
namespace {

constexpr int kVersion = 22809;  // 2.28.9

/// Where a registration or a window is asked for: all memory is as good.
void* new_handle() {
  static std::atomic<uintptr_t> next{0x1000};
  return reinterpret_cast<void*>(next.fetch_add(16));
}

ncclResult_t register_memory(ncclComm_t communicator, const void* buffer, void** handle) {
  if (!nccl::is_valid(communicator)) return nccl::refuse(ncclInvalidArgument, "not a communicator");
  if (buffer == nullptr || handle == nullptr) {
    return nccl::refuse(ncclInvalidArgument, "a null buffer");
  }
  *handle = new_handle();
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = kVersion;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
  }
  return "unknown result code";
}

// Calls of a group are answered one by one: the program can't tell.
ncclResult_t ncclGroupStart() {
  nccl::open_group();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (!nccl::close_group()) {
    return nccl::refuse(ncclInvalidUsage, "ncclGroupEnd: no group is open");
  }
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* operation,
                                      void* scalar,
                                      ncclDataType_t type,
                                      ncclScalarResidence_t residence,
                                      ncclComm_t communicator) {
  if (!nccl::is_valid(communicator)) return nccl::refuse(ncclInvalidArgument, "not a communicator");
  const nccl::DataType* const known = nccl::find_type(type);
  if (operation == nullptr || scalar == nullptr || known == nullptr) {
    return nccl::refuse(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: no factor of a known type");
  }
  *operation = nccl::add_operation(
      residence == ncclScalarDevice
          ? nccl::ScaledSum{.on_device = scalar, .type = known}
          : nccl::ScaledSum{.factor = nccl::number_at(static_cast<const char*>(scalar), *known)});
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t operation, ncclComm_t) {
  if (nccl::remove_operation(operation)) return ncclSuccess;
  return nccl::refuse(ncclInvalidArgument,
                      "operation " + std::to_string(operation) + " is none that was made");
}

ncclResult_t ncclMemAlloc(void** address, size_t bytes) {
  const cudaError_t error = nccl::cuda().malloc(address, bytes);
  if (error == cudaSuccess) return ncclSuccess;
  return nccl::refuse(ncclUnhandledCudaError, nccl::cuda().error_string(error));
}

ncclResult_t ncclMemFree(void* address) {
  return nccl::cuda().free(address) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void* buffer, size_t, void** handle) {
  return register_memory(communicator, buffer, handle);
}

ncclResult_t ncclCommDeregister(ncclComm_t, void*) { return ncclSuccess; }

ncclResult_t ncclCommWindowRegister(
    ncclComm_t communicator, void* buffer, size_t, void** window, int) {
  return register_memory(communicator, buffer, window);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t, void*) { return ncclSuccess; }
}
