#include "estimator/step/user_buffers.h"

#include <algorithm>
#include <optional>

namespace estimator {
namespace {

/// How a call overlaps with a matrix product: the one that needs its result, the one that makes its
/// input, or one that is independent of it.
struct UserBuffer {
  std::string module_kind;      ///< of the product
  int64_t chunks = 1;           ///< pieces of the call; one runs alone, to fill the pipeline
  int64_t multiprocessors = 0;  ///< that the whole product leaves free for the call
};

/// The kind of the part of a layer that a path ends in; empty for other modules.
std::string part_of_layer(const std::string& path) {
  if (path.ends_with(".self_attention")) return "attention";
  return path.ends_with(".mlp") ? "mlp" : "";
}

/// Empty for a call that runs alone.
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

/// Only the product of queries, keys and values gathers a whole input in the forward. The scatter
/// of its input's gradient goes on beside the gradient of its weight (ub_bulk_wgrad), if there is
/// one.
bool is_taken_out(const CollectiveRecord& record, bool is_frozen) {
  if (part_of_layer(record.module) != "attention") return false;
  return record.direction == Direction::kForward
             ? record.call.kind == CollectiveKind::kAllGather
             : is_frozen && record.call.kind == CollectiveKind::kReduceScatter;
}

std::vector<int64_t> adapter_widths(const Plan& plan) {
  if (!plan.training.has_adapters()) return {};
  return {plan.training.lora_rank, plan.training.lora_rank / plan.parallelism.tensor};
}

bool has_dim(const std::vector<int64_t>& shape, const std::vector<int64_t>& widths) {
  return shape.size() == 2 && std::ranges::find_first_of(shape, widths) != std::ranges::end(shape);
}

double seconds_beside(const UserBuffer& buffer,
                      double seconds,
                      double product_seconds,
                      int64_t gpu_multiprocessors) {
  const double alone = seconds / static_cast<double>(buffer.chunks);
  const double gpu = static_cast<double>(gpu_multiprocessors);
  const double slowed = product_seconds * gpu / (gpu - static_cast<double>(buffer.multiprocessors));
  const double beside = slowed * (1 - 1 / static_cast<double>(buffer.chunks));
  return alone + std::max(0.0, seconds - alone - beside) + slowed - product_seconds;
}

}  // namespace

UserBuffers::UserBuffers(const Plan& plan)
    : overlaps_qkv_(!plan.parallelism.tp_comm_overlap_disable_qkv),
      adapter_widths_(adapter_widths(plan)) {}

void UserBuffers::add(const OperatorRecord& product, double calls, double seconds_of_each) {
  const auto is_adapters = [this](const auto& shape) { return has_dim(shape, adapter_widths_); };
  if (std::ranges::any_of(product.shapes, is_adapters)) return;
  Products& products = products_[{product.direction, product.module_kind}];
  products.calls += calls;
  products.seconds += calls * seconds_of_each;
}

double UserBuffers::seconds_added(const CollectiveRecord& call,
                                  double seconds,
                                  int64_t gpu_multiprocessors) const {
  const std::optional<UserBuffer> buffer = user_buffer_of(call);
  const bool is_frozen = !adapter_widths_.empty();
  if (!buffer || (!overlaps_qkv_ && is_taken_out(call, is_frozen))) return seconds;
  const auto found = products_.find({call.direction, buffer->module_kind});
  const double product = found == products_.end() ? 0 : found->second.seconds / found->second.calls;
  return seconds_beside(*buffer, seconds, product, gpu_multiprocessors);
}

}  // namespace estimator
