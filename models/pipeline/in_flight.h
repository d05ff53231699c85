// Only the sources of Trainer include this.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include <memory>

#include "models/pipeline/trainer.h"

namespace models {

struct Trainer::InFlight {
  at::Tensor input;              ///< received hidden states, whose gradient is sent back
  torch::autograd::Edge output;  ///< where backward starts
  at::Tensor kept_output;        ///< undefined in frameworks that free it
  at::Tensor logits;             ///< undefined where nobody holds them
  at::Tensor mask;               ///< of the data loader, where a recomputed segment keeps it
  std::shared_ptr<ChunkPieces> pieces = nullptr;  ///< null where a chunk runs as a whole
};

}  // namespace models
