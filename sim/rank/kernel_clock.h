// Measures the time of kernels that run one after the other, by the host's clock.
#pragma once

#include <c10/core/Device.h>

#include <functional>

namespace sim {

class KernelClock {
 public:
  explicit KernelClock(c10::Device device) : device_(device) {}

  c10::Device device() const { return device_; }

  /// Seconds of one call of `run`, which launches kernels. It is the mean over as many calls as
  /// take some tenths of a second, so that the board's power settles. Short calls, which may end
  /// before the host has issued the next, are queued behind a long product.
  double seconds_of(const std::function<void()>& run) const;

  /// Seconds from the start of one empty kernel to the next, while the host is far ahead.
  double launch_seconds() const;

  /// Seconds that the host takes to call an operator.
  double host_seconds() const;

 private:
  void synchronize() const;
  double queued_seconds(const std::function<void()>& run, int calls) const;

  c10::Device device_;
};

}  // namespace sim
