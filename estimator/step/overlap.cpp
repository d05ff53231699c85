#include "estimator/step/overlap.h"

#include <algorithm>
#include <optional>

#include "estimator/compute/compute_time.h"
#include "estimator/step/user_buffers.h"

namespace estimator {
namespace {

/// 0 where there are no such calls.
template <class Key>
double mean_of(const std::map<Key, CallSeconds>& calls, const Key& key) {
  const auto found = calls.find(key);
  return found == calls.end() ? 0 : found->second.mean();
}

}  // namespace

void WorkBeside::add(const OperatorRecord& kernel, double calls, double seconds_of_each) {
  if (is_attention(kernel)) attention_[kernel.direction].add(calls, seconds_of_each);
  if (!is_matmul(kernel)) return;
  products_[{kernel.direction, kernel.module_kind}].add(calls, seconds_of_each);
}

double WorkBeside::added_by_ring_message(Direction direction,
                                         double seconds,
                                         double compute_share) const {
  const double step = mean_of(attention_, direction);
  return std::max(0.0, seconds - step) + compute_share * std::min(seconds, step);
}

double WorkBeside::added_in_user_buffers(const CollectiveRecord& call,
                                         double seconds,
                                         int64_t gpu_multiprocessors) const {
  const std::optional<UserBuffer> buffer = user_buffer_of(call);
  if (!buffer) return seconds;
  const double product = mean_of(products_, std::pair(call.direction, buffer->module_kind));
  return seconds_added(*buffer, seconds, product, gpu_multiprocessors);
}

void PortTraffic::add(double seconds_alone, double hidden_seconds, const PortUse& use) {
  calls_.push_back({seconds_alone, hidden_seconds, use});
}

double PortTraffic::shared_seconds(const PortUse& use) const {
  double shared = 0;
  for (const Calls& calls : calls_) shared += calls.seconds * lengthening(use, calls.use);
  return shared;
}

double PortTraffic::shared_waits(const PortUse& use) const {
  double shared = 0;
  for (const Calls& calls : calls_) {
    shared += (calls.seconds - calls.hidden_seconds) * lengthening(use, calls.use);
  }
  return shared;
}

void UnitCalls::add_to(PartTime& part, const PortTraffic& traffic) const {
  const double all = seconds.sum;
  const double work = part.compute_seconds + traffic.shared_waits(use);
  const double beside = work > 0 ? std::min(all - seconds.mean(), work) : 0;
  part.communication_seconds.data += all - beside;
  if (beside <= 0) return;
  part.communication_seconds.data += beside * (traffic.shared_seconds(use) / work);
  part.compute_seconds += compute_share * beside * (part.compute_seconds / work);
}

}  // namespace estimator
