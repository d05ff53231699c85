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
/// Of some kernels each.
constexpr int kQueuedCalls = 100;
/// No host takes so long for a call.
constexpr double kLongCall = 300e-6;

}  // namespace

void KernelClock::synchronize() const {
  if (device_.is_cpu()) return;
  c10::impl::getDeviceGuardImpl(device_.type())->synchronizeDevice(device_.index());
}

/// Behind one long product the host queues the calls; what they take is the difference.
double KernelClock::queued_seconds(const std::function<void()>& run, int calls) const {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device_);
  const int64_t size = device_.is_cpu() ? 64 : 8192;
  const at::Tensor large = at::zeros({size, size}, options);
  const auto timed = [&](int times) {
    synchronize();
    const Clock::time_point start = Clock::now();
    at::mm(large, large);
    for (int i = 0; i < times; ++i) run();
    synchronize();
    return seconds_since(start);
  };
  const auto least = [&](int times) {
    constexpr int kRepeats = 5;
    double seconds = timed(times);
    for (int i = 1; i < kRepeats; ++i) seconds = std::min(seconds, timed(times));
    return seconds;
  };
  timed(calls);
  return std::max(1e-9, (least(calls) - least(0)) / calls);
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
  const double seconds = timed(std::clamp<int64_t>(fill, 5, 100'000));
  const bool may_wait_for_host = !device_.is_cpu() && seconds < kLongCall;
  return may_wait_for_host ? std::min(seconds, queued_seconds(run, kQueuedCalls)) : seconds;
}

double KernelClock::launch_seconds() const {
  at::Tensor tiny = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device_));
  return queued_seconds([&] { tiny.add_(1); }, kTinyKernels);
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
