#include "sim/verify/ranks/snapshot.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/norm.h>
#include <c10/core/GradMode.h>

#include "models/pipeline/trainer.h"

namespace sim {
namespace {

std::vector<float> copy_of(const at::Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
  tensor_over(values).copy_(tensor.view(-1));
  return values;
}

/// What of a parameter a rank holds: all of it, or under FSDP its own piece.
at::Tensor held(const models::OwnedPiece& piece) {
  const models::Parameter& parameter = *piece.parameter;
  return parameter.part.defined() ? piece.weights : parameter.value.detach().view(-1);
}

TensorSnapshot snapshot_of(const models::OwnedPiece& piece) {
  const models::Parameter& parameter = *piece.parameter;
  const int64_t held_begin = parameter.part.defined() ? piece.begin : 0;
  return {
      .name = parameter.name,
      .shape = parameter.value.sizes().vec(),
      .sharding = parameter.sharding,
      .tensor_place = parameter.tensor_place,
      .begin = piece.begin,
      .end = piece.end,
      .gradient = copy_of(piece.gradients),
      .held_begin = held_begin,
      .held_end = held_begin + held(piece).numel(),
  };
}

/// The loss and the gradients, after they are reduced.
Snapshot take_gradients(const models::Trainer& trainer) {
  const c10::NoGradGuard no_grad;
  Snapshot snapshot{.loss = trainer.loss()};
  for (const models::OwnedPiece& piece : trainer.data_parallel().owned_pieces()) {
    snapshot.tensors.push_back(snapshot_of(piece));
  }
  return snapshot;
}

void add_parameters(Snapshot& snapshot, const models::Trainer& trainer) {
  const c10::NoGradGuard no_grad;
  auto tensor = snapshot.tensors.begin();
  for (const models::OwnedPiece& piece : trainer.data_parallel().owned_pieces()) {
    (tensor++)->parameter = copy_of(held(piece));
  }
}

}  // namespace

at::Tensor tensor_over(std::vector<float>& values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat);
}

double norm_of(const at::Tensor& tensor) { return tensor.norm().item().toDouble(); }

RankRunHooks snapshot_hooks(std::vector<Snapshot>& snapshots) {
  return {
      .before_step =
          [&snapshots](int64_t iteration, const models::Trainer& trainer) {
            if (iteration > 0) add_parameters(snapshots.back(), trainer);
            snapshots.push_back(take_gradients(trainer));
          },
      .at_end = [&snapshots](
                    const models::Trainer& trainer) { add_parameters(snapshots.back(), trainer); }};
}

}  // namespace sim
