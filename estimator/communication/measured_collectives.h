// Measured collectives: what nccl-tests printed, to be used in place of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/profile/collective_call.h"

namespace estimator {

struct MeasuredPoint {
  int64_t bytes = 0;  ///< nccl-tests' size, as in CollectiveCall
  double seconds = 0;
};

/// One collective over one group, by size.
struct MeasuredCollective {
  std::string origin;  ///< the file
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t ranks = 0;
  int64_t machines = 0;
  std::string device;                 ///< as CUDA names it
  std::vector<MeasuredPoint> points;  ///< ascending in bytes

  /// Between two sizes, log(seconds) is linear in log(bytes). Below the smallest it is the
  /// smallest's time, above the largest its bandwidth.
  double seconds(int64_t bytes) const;
  bool covers(int64_t bytes) const {
    return bytes >= points.front().bytes && bytes <= points.back().bytes;
  }
};

/// Reads what nccl-tests wrote: its text, or its JSON (option -J). Out-of-place times count.
/// `origin` names the file in messages. Throws UserError with the line and the reason when the
/// document is not whole, or when a result is marked wrong. Versions before 2.17 do not say which
/// collective they ran: then it is `untold`, and without that an error.
MeasuredCollective read_nccl_tests(const std::string& text,
                                   const std::string& origin,
                                   std::optional<CollectiveKind> untold = std::nullopt);

/// Bus bandwidth (nccl-tests, doc/PERFORMANCE.md): bytes per second x a factor by collective and
/// ranks that makes it comparable with the links'.
double bus_bytes_per_second(CollectiveKind kind, int64_t ranks, int64_t bytes, double seconds);

}  // namespace estimator
