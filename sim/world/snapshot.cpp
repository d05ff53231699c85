#include "sim/world/snapshot.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "models/trainer.h"

namespace sim {
namespace {

std::vector<float> copy_of(const at::Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
  tensor_over(values).copy_(tensor.view(-1));
  return values;
}

TensorSnapshot snapshot_of(const models::ParameterSlot& slot,
                           const std::pair<int64_t, int64_t>& shard) {
  const models::Parameter& parameter = *slot.parameter;
  TensorSnapshot snapshot{
      .name = parameter.name,
      .shape = parameter.value.sizes().vec(),
      .sharding = parameter.sharding,
      .begin = std::max(slot.begin, shard.first) - slot.begin,
      .end = std::min(slot.end, shard.second) - slot.begin,
      .parameter = copy_of(parameter.value.detach()),
  };
  if (snapshot.begin >= snapshot.end) {
    snapshot.begin = snapshot.end = 0;  // all of it is another data rank's
  }
  snapshot.gradient = copy_of(
      parameter.main_gradient.view(-1).narrow(0, snapshot.begin, snapshot.end - snapshot.begin));
  return snapshot;
}

}  // namespace

at::Tensor tensor_over(std::vector<float>& values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat);
}

Snapshot take_snapshot(const models::Trainer& trainer) {
  const c10::NoGradGuard no_grad;
  Snapshot snapshot{.loss = trainer.loss()};
  const models::GradientBuffer& gradients = trainer.gradients();
  for (const models::Bucket& bucket : gradients.buckets()) {
    for (const models::ParameterSlot& slot : bucket.slots) {
      snapshot.tensors.push_back(snapshot_of(slot, gradients.shard_range(bucket)));
    }
  }
  return snapshot;
}

}  // namespace sim
