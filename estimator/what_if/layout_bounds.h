// What a layout takes and holds at least, before its pieces are executed.
//
// Layouts that differ only in their pipeline, micro-batch, recompute and ZeRO stage have layers of
// one kind: the same tensor, context and expert ranks. Two small middle stages of the largest
// micro-batch and the least recompute tell what such a layer takes for a sample. Smaller
// micro-batches take no less for each sample, and recompute adds the forward.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "estimator/compose/pieces.h"
#include "estimator/compute/calibration.h"

namespace estimator {

/// One layer on one rank, for one sample.
struct LayerCost {
  double forward_seconds = 0;   ///< kernels, and calls that they wait for
  double backward_seconds = 0;  ///< without recompute
  double activation_bytes = 0;  ///< held until its backward if nothing is recomputed; 0: not known
};

/// Of middle stages as probe_runs() has them, in its order: of the second one only the memory
/// counts. `calibration` may be null.
LayerCost layer_cost(const std::vector<PieceRun>& runs,
                     const std::vector<RankProfile>& profiles,
                     const Calibration* calibration);

/// The same from all pieces of a pipeline, as piece_runs() has them.
LayerCost cost_of_pipeline(const std::vector<PieceRun>& runs,
                           const std::vector<RankProfile>& profiles,
                           const Calibration* calibration);

/// The costs of layers of one kind, by the micro-batch with which they were measured.
using LayerCosts = std::map<int64_t, LayerCost>;

/// The cost of the smallest measured micro-batch that is no smaller than the plan's; of zeros where
/// there is none.
LayerCost cost_for(const Plan& plan, const LayerCosts& costs);

/// (m + (p - 1) / v) times a micro-batch through the layers of a stage, the ideal of 1F1B
/// (Narayanan et al. 2021, section 2.2), in which the embedding, the loss and all that waits beside
/// the pipeline take no time.
double least_step_seconds(const Plan& plan, const LayerCost& cost);

/// least_bytes() and the activations of all forwards that a stage holds at once. Of recomputed
/// layers only the input counts.
int64_t least_peak_bytes(const Plan& plan, const LayerCost& cost);

}  // namespace estimator
