#include "sim/virtual_gpu/kernels/kernel_table.h"

#include <utility>

namespace virtual_gpu {

void KernelTable::add(const void* function,
                      const char* name,
                      const FatBinary* code,
                      KernelCode found) {
  std::lock_guard lock(mutex_);
  Kernel& kernel = kernels_[function];
  kernel.name = name;
  kernel.code = code;
  kernel.found = std::move(found);
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
