#include "estimator/communication/measured_collectives.h"

#include <algorithm>
#include <cmath>

namespace estimator {

double MeasuredCollective::seconds(int64_t bytes) const {
  if (bytes <= points.front().bytes) return points.front().seconds;
  const auto wanted = static_cast<double>(bytes);
  const MeasuredPoint& last = points.back();
  if (bytes >= last.bytes) return last.seconds * wanted / static_cast<double>(last.bytes);
  const auto above =
      std::upper_bound(points.begin(), points.end(), bytes, [](int64_t b, const MeasuredPoint& p) {
        return b < p.bytes;
      });
  const MeasuredPoint& low = *(above - 1);
  const auto low_bytes = static_cast<double>(low.bytes);
  const double along =
      std::log(wanted / low_bytes) / std::log(static_cast<double>(above->bytes) / low_bytes);
  return low.seconds * std::pow(above->seconds / low.seconds, along);
}

double bus_bytes_per_second(CollectiveKind kind, int64_t ranks, int64_t bytes, double seconds) {
  if (seconds <= 0) return 0;
  const auto n = static_cast<double>(ranks);
  const double rate = static_cast<double>(bytes) / seconds;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return rate * 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return rate * (n - 1) / n;
    default:
      return rate;
  }
}

}  // namespace estimator
