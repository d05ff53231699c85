// Curves given by points.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace estimator {

struct CurvePoint {
  double x = 0;
  double y = 0;
};

/// y at `x`, linear in log(x) between points of ascending positive x, and constant outside them.
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

}  // namespace estimator
