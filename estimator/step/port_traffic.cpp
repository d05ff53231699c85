#include "estimator/step/port_traffic.h"

namespace estimator {

void PortTraffic::add(double seconds, const PortUse& use) { calls_.push_back({seconds, use}); }

double PortTraffic::shared_seconds(const PortUse& use) const {
  double shared = 0;
  for (const Calls& calls : calls_) shared += calls.seconds * lengthening(use, calls.use);
  return shared;
}

}  // namespace estimator
