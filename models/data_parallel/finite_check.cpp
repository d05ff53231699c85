#include "models/data_parallel/finite_check.h"

#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>

#include <stdexcept>

namespace models {

void check_finite(const at::Tensor& scalar, const std::string& what) {
  if (at::isnan(scalar).item<bool>()) throw std::runtime_error("found NaN in " + what);
  if (at::isinf(scalar).item<bool>()) throw std::runtime_error("found Inf in " + what);
}

}  // namespace models
