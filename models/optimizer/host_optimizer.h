// The part of the optimizer that runs on the host, as in Megatron-LM's HybridDeviceOptimizer
// (megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py @d98e8a6).
//
// The GPU keeps the 16-bit parameters and the gradient buffer. The host keeps the fp32 master
// weights, the moments and a copy of the gradients. In a step all gradients are copied to the host
// in their own type, AdamW runs there (PyTorch's fused kernel), and the master weights are copied
// back: in fp32 into a temporary on the GPU, where they are cast (a non-blocking copy converts on
// the GPU, ATen's cuda/Copy.cu). With overlap each direction has its own stream and each piece is
// copied back as soon as it is updated. Without it, all copies are on the current stream, and
// pieces are copied back when all are updated.
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

/// Which pieces the host and the device update, by number. They are in the order of Megatron-LM's
/// parameter groups: first those with weight decay, then vectors.
struct PieceDivision {
  std::vector<std::size_t> host;    ///< the first pieces, until `fraction` is reached
  std::vector<std::size_t> device;  ///< the other pieces
};

/// Bytes of the tensors' elements, without the allocator's rounding.
int64_t bytes_of(const std::vector<at::Tensor>& tensors);

/// Divides the pieces so that the host updates `fraction` of the elements. Pure arithmetic.
PieceDivision divide_pieces(const std::vector<OptimizerPiece>& pieces, double fraction);

/// An fp32 copy of `weights` in the host's memory. It goes through a copy on the device and one in
/// page-locked memory, which are freed again.
at::Tensor master_weights_on_host(const at::Tensor& weights, const OffloadSettings& settings);

/// Copies of all parameters, which Megatron-LM holds while it builds its distributed optimizer: it
/// first makes a hybrid optimizer over whole parameters, and drops it once the one over this rank's
/// parts exists.
std::vector<at::Tensor> copies_of_whole_parameters(const DataParallel& data_parallel,
                                                   const OffloadSettings& settings);

class HostOptimizer {
 public:
  /// `settings.offload` must be set.
  HostOptimizer(const std::vector<OptimizerPiece>& pieces, const OptimizerSettings& settings);

  /// Starts to copy the fp32 gradients of the pieces to the host.
  void take_gradients(const std::vector<at::Tensor>& gradients);
  /// Updates the pieces with these gradients. The current stream then waits for the parameters.
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
  std::vector<StreamPoint> arrived_;  ///< when each piece's gradients have arrived
  SideStream to_host_, from_host_;
};

}  // namespace models
