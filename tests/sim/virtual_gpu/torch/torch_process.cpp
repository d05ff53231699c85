#include "torch_process.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "sim/virtual_gpu/control.h"

namespace virtual_gpu {
namespace {

constexpr size_t kAggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

c10::CachingDeviceAllocator::DeviceStats statistics() {
  return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0);
}

/// A function of control.h, found as a host program finds it.
template <typename Function>
Function* control(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  if (function == nullptr) throw std::runtime_error(std::string(name) + " is not loaded");
  return reinterpret_cast<Function*>(function);
}

[[noreturn]] void run_child(const VirtualGpuSpec& spec,
                            const std::function<void()>& body,
                            const std::map<std::string, std::string>& environment) {
  setenv(kEnvironmentVariable, to_environment(spec).c_str(), 1);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  try {
    load_torch_cuda();
    at::globalContext().lazyInitDevice(at::kCUDA);
    at::globalContext().setSDPUseCuDNN(false);
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

VirtualGpuSpec h100() {
  return {.name = "NVIDIA H100 80GB HBM3",
          .capability_major = 9,
          .capability_minor = 0,
          .multiprocessors = 132,
          .memory_bytes = 85029158912,
          .l2_bytes = 52428800,
          .device_count = 1};
}

VirtualGpuSpec a100() {
  return {.name = "NVIDIA A100-SXM4-80GB",
          .capability_major = 8,
          .capability_minor = 0,
          .multiprocessors = 108,
          .memory_bytes = 85097971712,
          .l2_bytes = 41943040,
          .device_count = 1};
}

void in_torch_process(const VirtualGpuSpec& spec,
                      const std::function<void()>& body,
                      const std::map<std::string, std::string>& environment) {
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) run_child(spec, body, environment);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "failures in the process are above";
}

void load_torch_cuda() {
  if (dlopen(TORCH_CUDA_LIBRARY, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw std::runtime_error(dlerror());
  }
}

int64_t allocated_bytes() { return statistics().allocated_bytes[kAggregate].current; }
int64_t peak_bytes() { return statistics().allocated_bytes[kAggregate].peak; }
int64_t reserved_bytes() { return statistics().reserved_bytes[kAggregate].current; }

uint64_t used_bytes() {
  return control<decltype(onerank_virtual_gpu_used_bytes)>("onerank_virtual_gpu_used_bytes")();
}

uint64_t kernel_launches() {
  return control<decltype(onerank_virtual_gpu_kernel_launches)>(
      "onerank_virtual_gpu_kernel_launches")();
}

std::map<std::string, uint64_t> launches_by_kernel() {
  std::map<std::string, uint64_t> launches;
  control<decltype(onerank_virtual_gpu_visit_kernels)>("onerank_virtual_gpu_visit_kernels")(
      [](const char* name, uint64_t count, void* context) {
        (*static_cast<std::map<std::string, uint64_t>*>(context))[name] += count;
      },
      &launches);
  return launches;
}

std::map<GemmKey, uint64_t> gemms_by_shape() {
  std::map<GemmKey, uint64_t> counts;
  control<decltype(onerank_virtual_gpu_visit_gemms)>("onerank_virtual_gpu_visit_gemms")(
      [](const onerank_virtual_gpu_gemm* gemm, void* context) {
        (*static_cast<std::map<GemmKey, uint64_t>*>(
            context))[{gemm->m, gemm->n, gemm->k, gemm->batch}] = gemm->count;
      },
      &counts);
  return counts;
}

void set_memory_bytes(uint64_t bytes) {
  control<decltype(onerank_virtual_gpu_set_memory_bytes)>("onerank_virtual_gpu_set_memory_bytes")(
      bytes);
}

}  // namespace virtual_gpu
