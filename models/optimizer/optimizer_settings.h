// How a shard is trained: the optimizer's numbers, and where its state lies.
#pragma once

#include <optional>

#include "estimator/plan/plan.h"

namespace models {

/// What the host does in the optimizer's place: see models/optimizer/host_optimizer.h.
struct OffloadSettings {
  double fraction = 1;   ///< of the parameters
  bool overlap = false;  ///< copies run beside the updates
  bool pin_gradients = true, pin_parameters = true;
  /// The device's tensors have values. Else there is nothing to copy and to compute: what the host
  /// would hold is made, or counted, and never touched, so that it costs this machine no memory.
  bool values = true;
};

struct OptimizerSettings {
  estimator::Optimizer kind = estimator::Optimizer::kAdamw;
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double momentum = 0.9;
  bool master_weights = true;       ///< fp32 copies of parameters that are not fp32
  bool copies_before_cast = false;  ///< each is made of a copy of the parameter (Megatron-LM)
  bool state_at_start = false;      ///< made before the first step (DeepSpeed)
  bool shared_step = false;  ///< one step counter for all pieces (TransformerEngine), else one each
  std::optional<OffloadSettings> offload;
};

}  // namespace models
