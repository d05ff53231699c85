#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"

/// What nvcc's generated code calls while a library with kernels loads, and at every <<<>>>.
/// (Their declarations are in crt/host_runtime.h, which is not meant to be included.)
using virtual_gpu::FatBinary;

namespace {

/// A __device__ variable: its place is taken when the host first asks for it.
struct Variable {
  size_t bytes;
  uint64_t address = 0;
};

struct Variables {
  std::mutex mutex;
  std::map<const void*, Variable> by_host_symbol;
};

Variables& variables() {
  static Variables* const variables = new Variables;
  return *variables;
}

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t dynamic_shared_bytes;
  cudaStream_t stream;
};

thread_local CallConfiguration pending_call;

}  // namespace

extern "C" {

// The handle is the binary itself. It stays: kernels point at it.
void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new FatBinary(wrapper));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** binary,
                            const char* host_function,
                            char*,
                            const char* name,
                            int,
                            uint3*,
                            uint3*,
                            dim3*,
                            dim3*,
                            int*) {
  virtual_gpu::kernels().add(host_function, name, reinterpret_cast<const FatBinary*>(binary));
}

void __cudaRegisterVar(void**, char* host_symbol, char*, const char*, int, size_t bytes, int, int) {
  std::lock_guard lock(variables().mutex);
  variables().by_host_symbol[host_symbol] = Variable{bytes};
}

unsigned __cudaPushCallConfiguration(dim3 grid,
                                     dim3 block,
                                     size_t dynamic_shared_bytes,
                                     cudaStream_t stream) {
  pending_call = {grid, block, dynamic_shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid,
                                       dim3* block,
                                       size_t* dynamic_shared_bytes,
                                       void* stream) {
  *grid = pending_call.grid;
  *block = pending_call.block;
  *dynamic_shared_bytes = pending_call.dynamic_shared_bytes;
  *static_cast<cudaStream_t*>(stream) = pending_call.stream;
  return cudaSuccess;
}
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  using virtual_gpu::device;
  if (device() == nullptr) return virtual_gpu::remember(cudaErrorInitializationError);
  std::lock_guard lock(variables().mutex);
  const auto found = variables().by_host_symbol.find(symbol);
  if (found == variables().by_host_symbol.end()) {
    return virtual_gpu::remember(cudaErrorInvalidSymbol);
  }
  Variable& variable = found->second;
  if (variable.address == 0) {
    variable.address =
        device()->memory.place_variable(virtual_gpu::current_device(), variable.bytes);
  }
  *address = reinterpret_cast<void*>(variable.address);
  return cudaSuccess;
}
