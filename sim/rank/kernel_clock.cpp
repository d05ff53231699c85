#include "sim/rank/kernel_clock.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <chrono>

namespace sim {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Fewer than the 1,024 launches that a CUDA stream holds before the host must wait.
constexpr int kTinyKernels = 500;

}  // namespace

void KernelClock::synchronize() const {
  if (device_.is_cpu()) return;
  c10::impl::getDeviceGuardImpl(device_.type())->synchronizeDevice(device_.index());
}

double KernelClock::seconds_of(const std::function<void()>& run) const {
  constexpr int kWarmUp = 3;
  const double settled_seconds = device_.is_cpu() ? 0.01 : 0.3;
  for (int i = 0; i < kWarmUp; ++i) run();
  synchronize();
  const auto timed = [&](int64_t times) {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < times; ++i) run();
    synchronize();
    return seconds_since(start) / static_cast<double>(times);
  };
  const auto fill = static_cast<int64_t>(settled_seconds / std::max(timed(1), 1e-7));
  return timed(std::clamp<int64_t>(fill, 5, 100'000));
}

// Behind one long product the host queues the tiny kernels; what they take is the difference.
double KernelClock::launch_seconds() const {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device_);
  const int64_t size = device_.is_cpu() ? 64 : 8192;
  const at::Tensor large = at::zeros({size, size}, options);
  at::Tensor tiny = at::zeros({1}, options);
  const auto timed = [&](int kernels) {
    synchronize();
    const Clock::time_point start = Clock::now();
    at::mm(large, large);
    for (int i = 0; i < kernels; ++i) tiny.add_(1);
    synchronize();
    return seconds_since(start);
  };
  timed(kTinyKernels);
  return std::max(1e-9, (timed(kTinyKernels) - timed(0)) / kTinyKernels);
}

double KernelClock::host_seconds() const {
  at::Tensor tiny = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device_));
  for (int i = 0; i < kTinyKernels; ++i) tiny.add_(1);
  synchronize();
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kTinyKernels; ++i) tiny.add_(1);
  const double seconds = seconds_since(start);
  synchronize();
  return seconds / kTinyKernels;
}

}  // namespace sim
