#include "sim/verify/tolerance.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace sim {
namespace {

constexpr double kFp32Relative = 1e-5;
constexpr double kFloor = 1e-3;
constexpr double kRoundings = 4;  // see the header

/// The most that one rounding to the type changes a number by, as a part of it.
double unit_roundoff(estimator::Dtype dtype) {
  switch (dtype) {
    case estimator::Dtype::kFp32:
      return std::ldexp(1, -24);
    case estimator::Dtype::kBf16:
      return std::ldexp(1, -8);
    case estimator::Dtype::kFp16:
      return std::ldexp(1, -11);
  }
  throw std::logic_error("unknown dtype");
}

}  // namespace

Tolerance tolerance_of(estimator::Dtype dtype, double median_rounding) {
  if (dtype == estimator::Dtype::kFp32) return {.relative = kFp32Relative, .floor = kFloor};
  return {.relative = kRoundings * median_rounding, .floor = kFloor, .roundings = kRoundings};
}

double allowed_difference(const Tolerance& tolerance, const TensorNorms& norms) {
  return std::max(
      tolerance.relative * std::max(norms.norm, tolerance.floor * norms.median_gradient),
      tolerance.roundings * norms.rounding);
}

double allowed_loss_difference(estimator::Dtype dtype, double loss, double wide_loss) {
  const double rounding = std::abs(loss - wide_loss);
  return allowed_difference(tolerance_of(dtype, unit_roundoff(dtype)),
                            {.norm = std::abs(loss), .rounding = rounding});
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sim
