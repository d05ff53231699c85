// AdamW and SGD with momentum over fp32 master weights, with PyTorch's fused kernels, and Muon with
// AdamW beside it.
//
// Without sharding each rank updates all its parameters. With the distributed optimizer (ZeRO-1) it
// updates its part of each bucket, so parameters may be cut where the part begins and ends. In a
// model in fp32 the parameters are also the master weights. The state is made at the first step, as
// in PyTorch and Megatron-LM, or at the start, as in DeepSpeed. The host may do a part of the work:
// see models/optimizer/host_optimizer.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/optimizer/adamw.h"
#include "models/optimizer/host_optimizer.h"
#include "models/optimizer/optimizer_settings.h"
#include "models/shard/communicator.h"
#include "models/shard/observer.h"

namespace models {

class DistributedOptimizer {
 public:
  /// Muon needs the tensor groups.
  DistributedOptimizer(DataParallel& data_parallel,
                       const OptimizerSettings& settings,
                       ProcessGroups groups = {});

  /// `after_clipping` runs before the weights are updated; it may be empty.
  void step(const std::function<void()>& after_clipping = {});

  /// Bytes on the device alone.
  int64_t master_weight_bytes() const;
  int64_t state_bytes() const;
  int64_t step_scalar_bytes() const;
  /// The memory that the host holds; empty if it does no part of the work.
  std::optional<estimator::HostMemoryRecord> host_memory() const;

 private:
  void add_pieces();
  void divide_into_calls();
  /// Of UpdateCalls::kFirstChunk: 0 for the first chunk, 1 for what follows; else 0.
  std::size_t step_of(const Parameter& parameter) const;
  /// What runs in the scope counts as work of this step, if there are two.
  std::optional<DirectionScope> scope_of_step(std::size_t step) const;
  void add_state(std::vector<at::Tensor>& states, at::Tensor state, std::size_t piece);
  /// Of Muon's matrices, and of the others. As in Megatron-LM, these are two optimizers, of which
  /// Muon is the first: AdamW's state is made after Muon's first step.
  void make_momenta();
  void make_state();
  void make_moment(std::vector<at::Tensor>& moments, std::size_t piece);
  std::vector<at::Tensor> zero_gradients() const;
  void lasts(const at::Tensor& tensor, estimator::MemoryCategory category, std::size_t piece) const;
  void clip(const std::vector<at::Tensor>& gradients) const;
  /// Of all gradients, one number each.
  at::Tensor summed_norms(const std::vector<at::Tensor>& norms) const;
  void update(const std::function<void()>& after_clipping);
  void update_device(const std::vector<at::Tensor>& gradients);
  void update_matrices(const std::vector<at::Tensor>& gradients);
  void step_sgd(const std::vector<at::Tensor>& gradients);
  void step_adamw_of(const std::vector<at::Tensor>& gradients);
  at::Tensor initial_master_weights(std::size_t piece) const;
  void copy_to_model(bool of_experts);
  void copy_quantized(bool of_experts, std::size_t step);
  bool is_apart(const Parameter& parameter) const;

  DataParallel& data_parallel_;
  OptimizerSettings settings_;
  ProcessGroups groups_;
  std::optional<HostOptimizer> host_;
  std::vector<std::size_t> host_pieces_;    ///< numbers of the host's pieces, in its order
  std::vector<std::size_t> device_pieces_;  ///< numbers of the other pieces
  std::vector<const Parameter*> owners_;    ///< one for each device piece, as in the lists below
  std::vector<at::Tensor> model_weights_;   ///< views of the parameters, [elements]
  std::vector<at::Tensor> master_weights_;  ///< fp32; the model weights themselves in fp32
  std::vector<std::size_t> matrices_;       ///< numbers of Muon's among the lists above
  std::vector<std::size_t> others_;         ///< numbers of the others
  std::vector<std::vector<std::size_t>> calls_;  ///< places in others_ that are updated at once
  std::vector<at::Tensor> momenta_;              ///< one for each of Muon's matrices
  AdamwState state_;                             ///< of the others; with SGD only the first moments
  std::vector<at::Tensor> scales_;               ///< of moments in 16 bits, one number for each
  bool own_master_weights_ = false;
  bool first_step_ = true;
};

}  // namespace models
