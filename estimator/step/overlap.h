// Communication of a micro-batch beside its work: what calls add to the part that they run in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "estimator/profile/rank_profile.h"
#include "estimator/step/stage_time.h"

namespace estimator {

/// Equal calls, or such that count as equal.
struct CallSeconds {
  double calls = 0, sum = 0;

  void add(double more, double seconds_of_each) {
    calls += more;
    sum += more * seconds_of_each;
  }
  double mean() const { return calls > 0 ? sum / calls : 0; }
};

/// The kernels of one micro-batch that calls run beside. Seconds of a call are those that it takes
/// alone; `compute_share` is what it takes of the GPU's compute while it runs.
class WorkBeside {
 public:
  void add(const OperatorRecord& kernel, double calls, double seconds_of_each);

  /// Of a message of the context ranks' ring, which travels beside a step of attention.
  double added_by_ring_message(Direction direction, double seconds, double compute_share) const;

  /// Of a call in TransformerEngine's user buffers; all of `seconds` where it is in none.
  double added_in_user_buffers(const CollectiveRecord& call,
                               double seconds,
                               int64_t gpu_multiprocessors) const;

 private:
  std::map<Direction, CallSeconds> attention_;
  std::map<std::pair<Direction, std::string>, CallSeconds> products_;  ///< by kind of module
};

/// What FSDP2 gathers and reduces in a part: one call after the other beside the work of other
/// units, but for one. The first unit waits for its parameters, and nothing is left to work while
/// the last gradients are reduced.
struct UnitCalls {
  CallSeconds seconds;
  double compute_share = 0;

  void add_to(PartTime& part) const;
};

}  // namespace estimator
