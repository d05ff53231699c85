// Calls of the data ranks' buckets share the GPU's ports with the calls of the work beside them.
#pragma once

#include <vector>

#include "estimator/communication/port_use.h"

namespace estimator {

/// The calls of one part of the step that use the GPU's ports, one after the other. Calls of other
/// groups that run beside the part share the ports fairly with them, so that both take longer. Such
/// calls count as spread evenly over the whole part.
class PortTraffic {
 public:
  /// Adds calls that take `seconds` when they run alone.
  void add(double seconds, const PortUse& use);

  /// How many seconds longer the part takes when calls with this `use` run beside all of it.
  double shared_seconds(const PortUse& use) const;

 private:
  struct Calls {
    double seconds = 0;
    PortUse use;
  };

  std::vector<Calls> calls_;
};

}  // namespace estimator
