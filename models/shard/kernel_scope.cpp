#include "models/shard/kernel_scope.h"

#include <vector>

namespace models {

KernelScope::KernelScope(const char* name) : is_named_(name != nullptr) {
  if (is_named_ && watch_.isActive()) watch_.before(name);
}

void KernelScope::moves(at::TensorList reads, at::TensorList writes) {
  if (!is_named_ || !watch_.needsOutputs()) return;
  watch_.setOutputs(std::vector<c10::IValue>{reads.vec(), writes.vec()});
}

}  // namespace models
