// Communication of a micro-batch beside its work: what calls add to the part that they run in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "estimator/communication/port_use.h"
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

/// Calls of a part of the step on the GPU's ports, none beside another. Calls of other groups that
/// run beside the part share the ports with them, fairly, and both take longer; they count as
/// beside all of the part alike.
class PortTraffic {
 public:
  /// `seconds_alone` of calls, of which `hidden_seconds` pass beside the part's kernels.
  void add(double seconds_alone, double hidden_seconds, const PortUse& use);

  /// What the part takes longer where calls of `use` run beside all of it; and of that, what they
  /// do beside calls that its kernels wait for.
  double shared_seconds(const PortUse& use) const;
  double shared_waits(const PortUse& use) const;

 private:
  struct Calls {
    double seconds = 0, hidden_seconds = 0;
    PortUse use;
  };

  std::vector<Calls> calls_;
};

/// What FSDP2 gathers and reduces in a part: one call after the other beside the work of other
/// units, but for one. The first unit waits for its parameters, and nothing is left to work while
/// the last gradients are reduced.
struct UnitCalls {
  CallSeconds seconds;
  double compute_share = 0;
  PortUse use;

  /// They hide beside kernels. Beside calls that kernels wait for, which `traffic` has, they run as
  /// well where both need a port, and hide nothing; on another port they count as waiting.
  void add_to(PartTime& part, const PortTraffic& traffic) const;
};

}  // namespace estimator
