// Muon: the momentum of each matrix is orthogonalised by Newton-Schulz steps before it is applied
// (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks").
//
// It follows TensorParallelMuon of Megatron-LM (megatron/core/optimizer/emerging_optimizers.py
// @d98e8a6) over OrthogonalizedOptimizer and newton_schulz_tp of NVIDIA's emerging_optimizers
// (orthogonalized_optimizers/), with the temporaries that these make, each for as long as a
// variable of theirs holds it: a matrix that tensor ranks split is gathered as a whole on each of
// them ("duplicated"), also if there is only one; queries, keys and values are copied apart; the
// steps are in bf16.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/optimizer/optimizer_settings.h"
#include "models/shard/communicator.h"
#include "models/shard/parameters.h"

namespace models {

/// Whether Muon updates the parameter (estimator::is_of_muon()).
bool is_of_muon(const Parameter& parameter);

/// One matrix with its state, all fp32 with as many elements.
struct MuonMatrix {
  const Parameter* parameter = nullptr;
  at::Tensor weights, gradient, momentum;
};

/// One step for each matrix, one after the other.
void step_muon(const std::vector<MuonMatrix>& matrices,
               const OptimizerSettings& settings,
               const ProcessGroups& groups);

/// The nearest (semi-)orthogonal matrix, about: U V^T of U S V^T = matrix, with singular values
/// between 0.7 and 1.2. `matrix` is fp32, [rows, columns].
at::Tensor orthogonalised(const at::Tensor& matrix, const MuonSettings& settings);

}  // namespace models
