// Interpolation between the points of a curve.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace estimator {

struct CurvePoint {
  double x = 0;
  double y = 0;
};

/// y at `x`: linear in log(x) between the points, constant outside them. The x of the points are
/// positive and ascend.
inline double interpolate_log(std::span<const CurvePoint> points, double x) {
  if (x <= points.front().x) return points.front().y;
  if (x >= points.back().x) return points.back().y;
  const auto above =
      std::upper_bound(points.begin(), points.end(), x, [](double value, const CurvePoint& p) {
        return value < p.x;
      });
  const CurvePoint& high = *above;
  const CurvePoint& low = *(above - 1);
  const double share = std::log(x / low.x) / std::log(high.x / low.x);
  return low.y + share * (high.y - low.y);
}

/// The same for a curve that is given as two lists of equal length.
inline double interpolate_log(std::span<const int64_t> xs, std::span<const double> ys, double x) {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < xs.size(); ++i) points.push_back({static_cast<double>(xs[i]), ys[i]});
  return interpolate_log(points, x);
}

}  // namespace estimator
