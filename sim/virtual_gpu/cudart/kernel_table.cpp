#include "sim/virtual_gpu/cudart/kernel_table.h"

namespace virtual_gpu {

void KernelTable::add(const void* function, const char* name, const FatBinary* code) {
  std::lock_guard lock(mutex_);
  Kernel& kernel = kernels_[function];
  kernel.name = name;
  kernel.code = code;
}

Kernel& KernelTable::find(const void* function) {
  std::lock_guard lock(mutex_);
  return kernels_[function];
}

void KernelTable::count_launch(Kernel& kernel) {
  ++kernel.launches;
  ++launches_;
}

void KernelTable::visit(const std::function<void(const Kernel&)>& visit) const {
  std::lock_guard lock(mutex_);
  for (const auto& [function, kernel] : kernels_) {
    if (kernel.launches > 0) visit(kernel);
  }
}

}  // namespace virtual_gpu
