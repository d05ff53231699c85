#include <cuda.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>

#include "sim/virtual_gpu/cuda/module.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/kernels/cubin.h"
#include "sim/virtual_gpu/kernels/ptx.h"

using virtual_gpu::device;

namespace {

/// PTX is a text, which a zero ends, and begins with its version or with comments.
bool is_ptx(std::string_view image) {
  return image.starts_with(".version") || image.starts_with("//");
}

virtual_gpu::KernelCodes kernels_of(std::string_view image) {
  if (!is_ptx(image)) return virtual_gpu::kernels_in(image);
  return virtual_gpu::kernels_in_ptx(image.substr(0, image.find('\0')));
}

CUresult load(CUmodule* module, std::string_view image) {
  if (device() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  virtual_gpu::work_log().tell({.kind = ONERANK_VIRTUAL_GPU_MODULE_LOAD, .stream = -1});
  *module = new CUmod_st{.kernels = kernels_of(image)};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  // CUDA is not told where an image ends: what its headers say is believed.
  constexpr size_t kUnknown = PTRDIFF_MAX;
  return load(module, {static_cast<const char*>(image), image == nullptr ? 0 : kUnknown});
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string image(std::istreambuf_iterator<char>(file), {});
  return load(module, image);
}

// The kernel table may still name the module's kernels: it stays.
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  std::lock_guard lock(module->mutex);
  for (CUfunc_st& known : module->functions) {
    if (known.name == name) {
      *function = &known;
      return CUDA_SUCCESS;
    }
  }
  CUfunc_st& added = module->functions.emplace_back(CUfunc_st{name});
  const auto found = module->kernels.find(added.name);
  virtual_gpu::kernels().add(
      &added,
      added.name.c_str(),
      nullptr,
      found == module->kernels.end() ? virtual_gpu::KernelCode() : found->second);
  *function = &added;
  return CUDA_SUCCESS;
}
