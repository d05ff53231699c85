// The part of the optimizer that the host does, as Megatron-LM's HybridDeviceOptimizer
// (megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py @d98e8a6).
//
// The GPU keeps the 16-bit parameters and the gradient buffer. fp32 master weights, moments and a
// copy of the gradients are the host's. In a step all gradients go to the host as they are, AdamW
// runs there (PyTorch's fused kernel), and the master weights come back: in fp32 into a temporary
// on the GPU, where they are cast (a copy that does not block converts on the GPU, ATen's
// cuda/Copy.cu). With overlap each direction has a stream of its own and each piece is copied back
// as soon as it is updated; else all are on the current stream, and come back when all are updated.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "models/data_parallel/data_parallel.h"
#include "models/optimizer/adamw.h"
#include "models/optimizer/optimizer_settings.h"
#include "models/shard/side_stream.h"

namespace models {

/// Who updates which pieces, by number, in the order of Megatron-LM's groups: those with weight
/// decay first, then vectors.
struct PieceDivision {
  std::vector<std::size_t> host;    ///< until their elements are the fraction of all or more
  std::vector<std::size_t> device;  ///< what is left
};

/// Of their elements, without the allocator's rounding.
int64_t bytes_of(const std::vector<at::Tensor>& tensors);

/// Pure arithmetic.
PieceDivision divide_pieces(const std::vector<OptimizerPiece>& pieces, double fraction);

/// An fp32 copy of `weights` in the host's memory, by way of a copy on the device and one in
/// page-locked memory, which go again.
at::Tensor master_weights_on_host(const at::Tensor& weights, const OffloadSettings& settings);

/// What Megatron-LM holds while it builds its distributed optimizer: copies of all parameters, for
/// the hybrid optimizer over whole ones that it makes first and throws away when the one over this
/// rank's parts is there.
std::vector<at::Tensor> copies_of_whole_parameters(const DataParallel& data_parallel,
                                                   const OffloadSettings& settings);

class HostOptimizer {
 public:
  /// `settings.offload` is set.
  HostOptimizer(const std::vector<OptimizerPiece>& pieces, const OptimizerSettings& settings);

  /// Starts the copies of the pieces' gradients, fp32.
  void take_gradients(const std::vector<at::Tensor>& gradients);
  /// Updates the pieces with them. The current stream waits for the parameters.
  void step();

  estimator::HostMemoryRecord memory() const;

 private:
  void make_state();
  void update(std::size_t begin, std::size_t end);
  void copy_back(std::size_t piece);
  at::Device device() const;

  OptimizerSettings settings_;
  std::vector<at::Tensor> model_weights_;  ///< on the device
  std::vector<at::Tensor> master_weights_, gradients_;
  AdamwState state_;
  std::vector<StreamPoint> arrived_;  ///< each piece's gradients
  SideStream to_host_, from_host_;
};

}  // namespace models
