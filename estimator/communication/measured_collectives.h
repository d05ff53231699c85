// Measured collectives: results of nccl-tests, which are used in place of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/profile/collective_call.h"

namespace estimator {

struct MeasuredPoint {
  int64_t bytes = 0;  ///< size as nccl-tests counts it, as in CollectiveCall
  double seconds = 0;
};

/// The measured times of one collective over one group, by size.
struct MeasuredCollective {
  std::string origin;  ///< the file
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t ranks = 0;
  int64_t machines = 0;
  std::string device;                 ///< as CUDA names it
  std::vector<MeasuredPoint> points;  ///< ascending in bytes

  /// Between two measured sizes, log(seconds) is linear in log(bytes). Below the smallest size the
  /// time is that of the smallest; above the largest the bandwidth is that of the largest.
  double seconds(int64_t bytes) const;
};

/// Reads the output of nccl-tests, as text or as JSON (option -J), and takes the out-of-place
/// times. `origin` names the file in messages. Throws UserError with the line and the reason when
/// the document is incomplete or a result is marked wrong. Versions before 2.17 do not say which
/// collective they ran; it is then taken to be `untold`, and without `untold` this is an error.
MeasuredCollective read_nccl_tests(const std::string& text,
                                   const std::string& origin,
                                   std::optional<CollectiveKind> untold = std::nullopt);

/// Bus bandwidth (nccl-tests, doc/PERFORMANCE.md): bytes per second times a factor that depends on
/// the collective and the number of ranks and makes the result comparable with a link's bandwidth.
double bus_bytes_per_second(CollectiveKind kind, int64_t ranks, int64_t bytes, double seconds);

}  // namespace estimator
