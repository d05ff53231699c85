// Gradients and parameters of one rank after one iteration. They are copied, so that the allocator
// does not count them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/shard/parameters.h"
#include "sim/rank/rank_run.h"

namespace sim {

/// One parameter and its gradient. `gradient` holds the elements [begin, end) of the flattened
/// parameter: with the distributed optimizer a rank has reduced only its part of a gradient. Under
/// FSDP a rank also holds only a part of the parameter.
struct TensorSnapshot {
  std::string name;
  std::vector<int64_t> shape;
  models::Sharding sharding;
  models::TensorPlace tensor_place;
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<float> gradient;
  int64_t held_begin = 0;
  int64_t held_end = 0;
  std::vector<float> parameter;  ///< the elements [held_begin, held_end)
};

struct Snapshot {
  double loss = 0;
  std::vector<TensorSnapshot> tensors;
};

/// Hooks that take a snapshot of each iteration: the gradients before the step, the parameters
/// before the next step or at the end, when all are gathered.
RankRunHooks snapshot_hooks(std::vector<Snapshot>& snapshots);

/// A tensor [size] that uses the memory of the vector.
at::Tensor tensor_over(std::vector<float>& values);

/// The Euclidean norm.
double norm_of(const at::Tensor& tensor);

}  // namespace sim
