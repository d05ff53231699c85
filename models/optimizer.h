// AdamW and SGD with momentum over fp32 main weights, with PyTorch's fused kernels.
//
// Without sharding each rank updates all its parameters. With the distributed optimizer (ZeRO-1) it
// updates its part of each bucket: pieces of parameters cut where the part begins and ends. A model
// in fp32 is its own main weight. State is made at the first step, as PyTorch and Megatron-LM do,
// or at the start, as DeepSpeed does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "estimator/plan/plan.h"
#include "models/data_parallel.h"

namespace models {

struct OptimizerSettings {
  estimator::Optimizer kind = estimator::Optimizer::kAdamw;
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double momentum = 0.9;
  bool main_weights = true;     ///< fp32 copies of parameters that are not fp32
  bool state_at_start = false;  ///< made before the first step (DeepSpeed)
  bool shared_step = false;  ///< one step counter for all pieces (TransformerEngine), else one each
};

class DistributedOptimizer {
 public:
  DistributedOptimizer(DataParallel& data_parallel, const OptimizerSettings& settings);

  void step();

  int64_t main_weight_bytes() const;
  int64_t state_bytes() const;
  int64_t step_scalar_bytes() const;

 private:
  void make_state();
  void make_state_with_zero_gradients();
  void lasts(const at::Tensor& tensor, estimator::MemoryCategory category, std::size_t piece) const;
  void update();
  void copy_to_model();

  DataParallel& data_parallel_;
  OptimizerSettings settings_;
  std::vector<const Parameter*> owners_;   ///< of each piece
  std::vector<at::Tensor> model_weights_;  ///< views of the parameters, [elements]
  std::vector<at::Tensor> main_weights_;   ///< fp32; the model weights themselves in fp32
  std::vector<at::Tensor> first_moments_, second_moments_, steps_;
  bool own_main_weights_ = false;
  bool first_step_ = true;
};

}  // namespace models
