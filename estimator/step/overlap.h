// Communication that runs at the same time as the kernels of a micro-batch: how much time it adds
// to the forward or backward in which it runs.
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

/// Number and total seconds of calls that count as equal.
struct CallSeconds {
  double calls = 0, sum = 0;

  void add(double more, double seconds_of_each) {
    calls += more;
    sum += more * seconds_of_each;
  }
  double mean() const { return calls > 0 ? sum / calls : 0; }
};

/// The kernels of one micro-batch beside which calls run. The seconds of a call are those that it
/// takes alone; `compute_share` is the share of the GPU's compute that it uses while it runs.
class WorkBeside {
 public:
  void add(const OperatorRecord& kernel, double calls, double seconds_of_each);

  /// Seconds that a message of the context ranks' ring adds; it is sent beside a step of attention.
  double added_by_ring_message(Direction direction, double seconds, double compute_share) const;

  /// Seconds that a call in TransformerEngine's user buffers adds; all of `seconds` if the call
  /// does not use them.
  double added_in_user_buffers(const CollectiveRecord& call,
                               double seconds,
                               int64_t gpu_multiprocessors) const;

 private:
  std::map<Direction, CallSeconds> attention_;
  std::map<std::pair<Direction, std::string>, CallSeconds> products_;  ///< by kind of module
};

/// The calls of one part of the step that use the GPU's ports, one after the other. Calls of other
/// groups that run beside the part share the ports fairly with them, so that both take longer. Such
/// calls count as spread evenly over the whole part.
class PortTraffic {
 public:
  /// Adds calls that take `seconds_alone` when they run alone, of which `hidden_seconds` pass
  /// beside the part's kernels.
  void add(double seconds_alone, double hidden_seconds, const PortUse& use);

  /// How many seconds longer the part takes when calls with this `use` run beside all of it;
  /// shared_waits() counts only the part's calls for which its kernels wait.
  double shared_seconds(const PortUse& use) const;
  double shared_waits(const PortUse& use) const;

 private:
  struct Calls {
    double seconds = 0, hidden_seconds = 0;
    PortUse use;
  };

  std::vector<Calls> calls_;
};

/// The all-gathers and reduce-scatters of FSDP2 in a part of the step. They run one after the other
/// beside the work of other units, except one of them: the first unit must wait for its parameters,
/// and no work is left while the last gradients are reduced.
struct UnitCalls {
  CallSeconds seconds;
  double compute_share = 0;
  PortUse use;

  /// Adds the time of these calls to `part`. They are hidden beside kernels. `traffic` has the
  /// calls of the part for which kernels wait: while these calls share a port with them, both run,
  /// but nothing is hidden.
  void add_to(PartTime& part, const PortTraffic& traffic) const;
};

}  // namespace estimator
