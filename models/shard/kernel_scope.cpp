#include "models/shard/kernel_scope.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <vector>

namespace models {

KernelScope::KernelScope(const char* name) : is_named_(name != nullptr) {
  if (is_named_ && watch_.isActive()) watch_.before(name);
}

void KernelScope::moves(at::TensorList reads, at::TensorList writes) {
  if (!is_named_ || !watch_.needsOutputs()) return;
  watch_.setOutputs(std::vector<c10::IValue>{reads.vec(), writes.vec()});
}

void fill_outputs(std::initializer_list<at::IntArrayRef> shapes, const at::TensorOptions& options) {
  const at::Context& context = at::globalContext();
  if (!context.deterministicAlgorithms() || !context.deterministicFillUninitializedMemory()) return;
  std::vector<at::Tensor> filled;
  for (const at::IntArrayRef shape : shapes) filled.push_back(at::empty(shape, options));
}

}  // namespace models
