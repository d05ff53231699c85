#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "sim/virtual_gpu/spec.h"
#include "tests/sim/virtual_gpu/torch/allocator_model.h"

namespace virtual_gpu {

/// Tensors on the virtual GPU.
const auto kFloat = at::TensorOptions().device(at::kCUDA).dtype(at::kFloat);
const auto kBfloat16 = at::TensorOptions().device(at::kCUDA).dtype(at::kBFloat16);

/// The GPUs of the tests.
VirtualGpuSpec h100();
VirtualGpuSpec a100();

/// Runs `body` in a forked process that plays `spec`, with libtorch_cuda.so loaded and CUDA
/// initialised; its failures become the calling test's. `environment` is set before torch loads.
void in_torch_process(const VirtualGpuSpec& spec,
                      const std::function<void()>& body,
                      const std::map<std::string, std::string>& environment = {});

/// Loads libtorch_cuda.so, if it is not loaded, without initialising CUDA.
void load_torch_cuda();

/// Of PyTorch's allocator, device 0, now.
int64_t allocated_bytes();
/// The most that was allocated until now.
int64_t peak_bytes();
int64_t reserved_bytes();

/// Through the control interface, as a host program reads it.
uint64_t used_bytes();
uint64_t kernel_launches();
std::map<std::string, uint64_t> launches_by_kernel();
using GemmKey = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // m, n, k, batch
std::map<GemmKey, uint64_t> gemms_by_shape();
void set_memory_bytes(uint64_t bytes);

}  // namespace virtual_gpu
