// AdamW and SGD with momentum over fp32 master weights, with PyTorch's fused kernels.
//
// Without sharding each rank updates all its parameters. With the distributed optimizer (ZeRO-1) it
// updates its part of each bucket: pieces of parameters cut where the part begins and ends. A model
// in fp32 is its own master weight. State is made at the first step, as PyTorch and Megatron-LM do,
// or at the start, as DeepSpeed does. The host may do a part of it:
// models/optimizer/host_optimizer.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/optimizer/adamw.h"
#include "models/optimizer/host_optimizer.h"
#include "models/optimizer/optimizer_settings.h"

namespace models {

class DistributedOptimizer {
 public:
  DistributedOptimizer(DataParallel& data_parallel, const OptimizerSettings& settings);

  void step();

  /// Of the device alone.
  int64_t master_weight_bytes() const;
  int64_t state_bytes() const;
  int64_t step_scalar_bytes() const;
  /// What the host holds; empty where it does nothing.
  std::optional<estimator::HostMemoryRecord> host_memory() const;

 private:
  void add_pieces();
  void make_state();
  void make_state_with_zero_gradients();
  void lasts(const at::Tensor& tensor, estimator::MemoryCategory category, std::size_t piece) const;
  void update();
  void update_device(const std::vector<at::Tensor>& gradients);
  void copy_to_model();

  DataParallel& data_parallel_;
  OptimizerSettings settings_;
  std::optional<HostOptimizer> host_;
  std::vector<std::size_t> host_pieces_;    ///< by number, in the host's order
  std::vector<std::size_t> device_pieces_;  ///< the others
  std::vector<const Parameter*> owners_;    ///< of each of the others, as all that follows
  std::vector<at::Tensor> model_weights_;   ///< views of the parameters, [elements]
  std::vector<at::Tensor> master_weights_;  ///< fp32; the model weights themselves in fp32
  AdamwState state_;                        ///< the first moments alone with SGD
  bool own_master_weights_ = false;
  bool first_step_ = true;
};

}  // namespace models
