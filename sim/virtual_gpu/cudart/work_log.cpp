#include "sim/virtual_gpu/cudart/work_log.h"

namespace virtual_gpu {

void WorkLog::count_gemm(const GemmShape& shape) {
  std::lock_guard lock(mutex_);
  ++gemms_[shape];
}

void WorkLog::visit_gemms(
    const std::function<void(const GemmShape&, uint64_t count)>& visit) const {
  std::lock_guard lock(mutex_);
  for (const auto& [shape, count] : gemms_) visit(shape, count);
}

}  // namespace virtual_gpu
