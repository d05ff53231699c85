#include "estimator/compute/gpu_variation.h"

#include <cmath>
#include <numbers>
#include <string_view>

#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view gpu_variation_json;
}

namespace estimator {
namespace {

double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

}  // namespace

double expected_largest_normal(int64_t count) {
  // E[max] = integral of 1 - F(x)^n - F(-x)^n over x > 0. The midpoint rule is exact to 1e-8 with
  // these steps, as for any smooth function that ends flat; up to a million draws.
  constexpr double kStep = 0.125, kEnd = 9;
  const auto n = static_cast<double>(count);
  double sum = 0;
  for (double x = kStep / 2; x < kEnd; x += kStep) {
    sum += 1 - std::pow(normal_below(x), n) - std::pow(normal_below(-x), n);
  }
  return sum * kStep;
}

TaggedNumber usual_gpu_deviation() {
  static const auto usual =
      read_document<TaggedNumber>(onerank_data::gpu_variation_json, "gpu_variation.json");
  return usual;
}

TaggedNumber gpu_deviation(const Plan& plan) {
  return given_or(plan.cluster.gpu_deviation, usual_gpu_deviation());
}

double slowest_gpu_slowdown(int64_t gpus, double deviation) {
  return 1 + deviation * expected_largest_normal(gpus);
}

double slowest_gpu_slowdown(const Plan& plan) {
  return slowest_gpu_slowdown(plan.world_size(), gpu_deviation(plan).value);
}

}  // namespace estimator
