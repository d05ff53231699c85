// Gradients and parameters of one rank after one iteration, copied out of the tensors that the
// allocator counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/shard/parameters.h"

namespace models {
class Trainer;
}

namespace sim {

/// One parameter. With the distributed optimizer a rank has reduced only its part of a gradient:
/// `gradient` holds the elements [begin, end) of the flattened parameter; under FSDP it holds no
/// more of the parameter, either.
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

/// Loss and gradients, once they are reduced and before the step.
Snapshot take_gradients(const models::Trainer& trainer);
/// The parameters after the step, into a snapshot of the same trainer's gradients.
void add_parameters(Snapshot& snapshot, const models::Trainer& trainer);

/// The vector's elements as a tensor [size] over its memory.
at::Tensor tensor_over(std::vector<float>& values);

/// The Euclidean norm.
double norm_of(const at::Tensor& tensor);

}  // namespace sim
