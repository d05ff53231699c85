// The FLOPs of matrix products and attention in a rank's recorded iteration.
#pragma once

#include "estimator/profile/rank_profile.h"

namespace estimator {

struct ProgramFlops {
  double executed = 0;  ///< as they were run
  /// Those of the model: forward, and at most twice as many in backward, because a product has two
  /// gradients. A backward that is differentiated itself counts whole, an evaluation (a call
  /// without gradients of a module that is trained) not at all.
  double model = 0;
  /// False if the rank runs compiled code and not all gradients: what its backward runs again can't
  /// be told from what it computes. One product may lack: the model's input needs no gradient.
  bool is_model_known = true;
};

/// Recompute is told by the modules that run again (Direction::kRecompute), and by products of the
/// backward beyond two for each of the forward, which compiled code has. Of fused attention's
/// backward, which runs one of its five products again, four count. Products of the optimizer are
/// no part of the model. `profile` has a trace.
ProgramFlops program_flops(const RankProfile& profile);

}  // namespace estimator
