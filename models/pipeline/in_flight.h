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

  /// Pieces know where their backwards start. The end of all would hold their leaves.
  void let_go_of_graph() {
    output = {};
    if (kept_output.defined()) kept_output = kept_output.detach();
  }
};

}  // namespace models
