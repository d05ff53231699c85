#include "sim/rank/rank_device.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "estimator/base/errors.h"
#include "sim/virtual_gpu/control.h"

namespace sim {
namespace {

using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::UserError;

using SetMemoryBytes = decltype(&onerank_virtual_gpu_set_memory_bytes);

/// A function that a loaded library exports, or null.
template <class Function>
Function find_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

SetMemoryBytes virtual_gpu_control() {
  return find_function<SetMemoryBytes>("onerank_virtual_gpu_set_memory_bytes");
}

UserError lacks(std::string what, std::string where, std::string help) {
  return UserError({.what = std::move(what), .where = std::move(where), .help = std::move(help)},
                   ExitCode::kMachineLacks);
}

void check_virtual_gpu(DeviceKind kind) {
  const bool loaded = virtual_gpu_control() != nullptr;
  if (kind == DeviceKind::kVirtual && !loaded) {
    throw lacks("the virtual GPU's libraries are not loaded",
                "--device virtual",
                "start the rank through `onerank run`, which loads them");
  }
  if (kind == DeviceKind::kCuda && loaded) {
    throw lacks("the virtual GPU's libraries are loaded in place of the real ones",
                "--device cuda",
                "take them out of LD_PRELOAD");
  }
}

/// Flash attention, and with a mask, which it does not take, the memory-efficient kernel: cuDNN's
/// workspaces are not public, and the others would keep other tensors.
void pin_attention() {
  at::globalContext().setSDPUseFlash(true);
  at::globalContext().setSDPUseCuDNN(false);
  at::globalContext().setSDPUseMemEfficient(true);
  at::globalContext().setSDPUseMath(false);
}

/// Throws where torch has no kernels for the GPU's generation. Leaves no memory behind.
void launch_one_kernel() {
  at::empty({1}, at::TensorOptions(at::kCUDA)).fill_(1);
  c10::getDeviceAllocator(at::kCUDA)->emptyCache();
}

}  // namespace

void load_device_library(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return;
  check_virtual_gpu(kind);
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw lacks("torch's CUDA library cannot be loaded",
                dlerror(),
                "install a torch with CUDA (scripts/quickstart does), or use --device cpu");
  }
}

void start_device(DeviceKind kind, bool lift_limit) {
  if (kind == DeviceKind::kCpu) return;
  if (lift_limit) virtual_gpu_control()(static_cast<uint64_t>(kLiftedMemoryBytes));
  try {
    at::globalContext().lazyInitDevice(at::kCUDA);
    launch_one_kernel();
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    throw lacks("this torch cannot use the GPU",
                message.substr(0, message.find('\n')),
                kind == DeviceKind::kCuda
                    ? "check the driver with nvidia-smi, or use --device virtual"
                    : "it has no kernels for this generation: give scripts/quickstart --torch DIR "
                      "one that has");
  }
  pin_attention();
}

c10::Device torch_device(DeviceKind kind) {
  return kind == DeviceKind::kCpu ? c10::Device(at::kCPU) : c10::Device(at::kCUDA, 0);
}

Determinism::Determinism(const estimator::TrainingConfig& training)
    : algorithms_(at::globalContext().deterministicAlgorithms()),
      fills_(at::globalContext().deterministicFillUninitializedMemory()) {
  at::globalContext().setDeterministicAlgorithms(training.deterministic_mode, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(training.fills_empty_tensors());
}

Determinism::~Determinism() {
  at::globalContext().setDeterministicAlgorithms(algorithms_, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(fills_);
}

}  // namespace sim
