#include "sim/verify/tolerance.h"

#include <algorithm>
#include <stdexcept>

namespace sim {

Tolerance tolerance_of(estimator::Dtype dtype) {
  switch (dtype) {
    case estimator::Dtype::kFp32:
      return {.relative = 1e-5, .floor = 1e-3};
    case estimator::Dtype::kBf16:
    case estimator::Dtype::kFp16:
      return {.relative = 0.05, .floor = 0.1};
  }
  throw std::logic_error("unknown dtype");
}

double allowed_difference(const Tolerance& tolerance, double norm, double median_gradient_norm) {
  return tolerance.relative * std::max(norm, tolerance.floor * median_gradient_norm);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sim
