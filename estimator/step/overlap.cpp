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

void UnitCalls::add_to(PartTime& part) const {
  const double all = seconds.sum;
  const double hidden = std::min(all - seconds.mean(), part.compute_seconds);
  part.communication_seconds.data += all - hidden;
  part.compute_seconds += compute_share * hidden;
}

}  // namespace estimator
