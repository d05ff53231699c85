#include "models/shard/stand_in_output.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <vector>

namespace models {

void fill_outputs(std::initializer_list<at::IntArrayRef> shapes, const at::TensorOptions& options) {
  const at::Context& context = at::globalContext();
  if (!context.deterministicAlgorithms() || !context.deterministicFillUninitializedMemory()) return;
  std::vector<at::Tensor> filled;
  for (const at::IntArrayRef shape : shapes) filled.push_back(at::empty(shape, options));
}

}  // namespace models
