#include "estimator/step/user_buffers.h"

#include <algorithm>

namespace estimator {
namespace {

/// The kind of the part of a layer that a path ends in; empty for other modules.
std::string part_of_layer(const std::string& path) {
  if (path.ends_with(".self_attention")) return "attention";
  return path.ends_with(".mlp") ? "mlp" : "";
}

}  // namespace

std::optional<UserBuffer> user_buffer_of(const CollectiveRecord& record) {
  const std::string part = part_of_layer(record.module);
  if (record.call.group != GroupKind::kTensor || part.empty()) return {};
  constexpr int64_t kMultiprocessors = 16;  // of a call that copy engines do not do
  UserBuffer buffer{
      .module_kind = part, .chunks = record.call.group_size, .multiprocessors = kMultiprocessors};
  switch (record.call.kind) {
    case CollectiveKind::kAllGather:
      buffer.multiprocessors = record.direction == Direction::kBackward ? kMultiprocessors / 2 : 0;
      return buffer;
    case CollectiveKind::kReduceScatter:
      return buffer;
    default:
      return {};
  }
}

double seconds_added(const UserBuffer& buffer,
                     double seconds,
                     double product_seconds,
                     int64_t gpu_multiprocessors) {
  const double alone = seconds / static_cast<double>(buffer.chunks);
  const double gpu = static_cast<double>(gpu_multiprocessors);
  const double slowed = product_seconds * gpu / (gpu - static_cast<double>(buffer.multiprocessors));
  const double beside = slowed * (1 - 1 / static_cast<double>(buffer.chunks));
  return alone + std::max(0.0, seconds - alone - beside) + slowed - product_seconds;
}

}  // namespace estimator
