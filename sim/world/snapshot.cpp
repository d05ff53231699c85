#include "sim/world/snapshot.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include "models/trainer.h"

namespace sim {
namespace {

std::vector<float> copy_of(const at::Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
  tensor_over(values).copy_(tensor.view(-1));
  return values;
}

TensorSnapshot snapshot_of(const models::OwnedPiece& piece) {
  const models::Parameter& parameter = *piece.parameter;
  const bool held_whole = !parameter.part.defined();
  const at::Tensor held = held_whole ? parameter.value.detach().view(-1) : piece.weights;
  return {
      .name = parameter.name,
      .shape = parameter.value.sizes().vec(),
      .sharding = parameter.sharding,
      .begin = piece.begin,
      .end = piece.end,
      .gradient = copy_of(piece.gradients),
      .held_begin = held_whole ? 0 : piece.begin,
      .held_end = held_whole ? parameter.value.numel() : piece.end,
      .parameter = copy_of(held),
  };
}

}  // namespace

at::Tensor tensor_over(std::vector<float>& values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat);
}

Snapshot take_snapshot(const models::Trainer& trainer) {
  const c10::NoGradGuard no_grad;
  Snapshot snapshot{.loss = trainer.loss()};
  for (const models::OwnedPiece& piece : trainer.data_parallel().owned_pieces()) {
    snapshot.tensors.push_back(snapshot_of(piece));
  }
  return snapshot;
}

}  // namespace sim
