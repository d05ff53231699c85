// Settings of the optimizer: its hyperparameters, and where its state lies.
#pragma once

#include <optional>

#include "estimator/plan/plan.h"

namespace models {

/// The part of the optimizer that the host does; see models/optimizer/host_optimizer.h.
struct OffloadSettings {
  double fraction = 1;   ///< part of the parameters that the host updates
  bool overlap = false;  ///< copies run at the same time as the updates
  bool pin_gradients = true, pin_parameters = true;
  /// Whether the device's tensors have values. If not, nothing is copied or computed: the host's
  /// tensors are made or counted but never touched, so that they cost this machine no memory.
  bool values = true;
};

/// Of Muon; see models/optimizer/muon.h. AdamW's hyperparameters are those of the other parameters.
struct MuonSettings {
  int64_t steps = 5;      ///< of Newton-Schulz
  bool split_qkv = true;  ///< queries, keys and values are matrices of their own
  bool nesterov = false;
  estimator::MuonTensorMode tensor_mode = estimator::MuonTensorMode::kDuplicated;
  double momentum = 0.9;
  double extra_scale = 1;
  bool bf16 = true;              ///< type of the steps, else fp32
  double smallest_norm = 1e-15;  ///< by which a momentum is divided before the steps
};

/// What one call of AdamW updates: all pieces; the matrices, and then the rest, which does not
/// decay; each piece by itself; or the first model chunk but for its experts, and then the rest
/// (overlap_param_gather_with_optimizer_step in megatron/core/optimizer/__init__.py, where new
/// weights of the first come into the model before the second; here after it, which is as long).
enum class UpdateCalls { kOne, kByDecay, kEach, kFirstChunk };

struct OptimizerSettings {
  estimator::Optimizer kind = estimator::Optimizer::kAdamw;
  bool narrow_moments = false;  ///< AdamW's are in bf16, beside fp32 weights
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double momentum = 0.9;
  MuonSettings muon;
  bool device_computes = true;      ///< else kernels that no operator stands for are only noted
  bool scales_loss = false;         ///< as fp16 needs it
  bool master_weights = true;       ///< fp32 copies of parameters that are not fp32
  bool copies_before_cast = false;  ///< casts a copy of the parameter (Megatron-LM)
  bool state_at_start = false;      ///< the state is made before the first step (DeepSpeed)
  /// DeepSpeed's engine: gradients come clipped from the data ranks, and the state is made after
  /// them. Gradients of zeros are made before the first step, and dropped.
  bool gradients_come_clipped = false;
  bool clips_on_device = false;  ///< by a factor that the device computes (PyTorch)
  bool sums_norms = false;       ///< of parts of parameters, one number each (DTensor)
  UpdateCalls calls = UpdateCalls::kOne;
  bool experts_apart = false;  ///< experts are never of the first chunk's call
  bool shared_step = false;  ///< one step counter for all pieces (TransformerEngine), else one each
  std::optional<OffloadSettings> offload;
};

}  // namespace models
