// Megatron-LM's dispatcher flex: DeepEP and HybridEP send a token once to each rank that has one of
// its experts, over the network once to each domain, and combine what the experts make of it on
// the way back. Rates are published (data/expert_dispatch.json), and how many tokens go where is a
// mean (plan/drawn_experts.h).
#pragma once

#include <cstdint>

#include "estimator/communication/fabric.h"
#include "estimator/plan/drawn_experts.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The experts' ranks of a plan, and what one of them sends.
struct ExpertDispatch {
  FlexBackend backend = FlexBackend::kDeepEp;
  GroupPlacement place;
  int64_t tokens = 0;  ///< of a micro-batch on a rank
  int64_t hidden_size = 0;
  ExpertDraw draw;
  int64_t multiprocessors = 0;  ///< of a call

  int64_t experts_of_rank() const { return draw.experts / place.ranks; }
  /// Tokens that a rank receives, each once; in the mean.
  double received_tokens() const;
  /// Tokens that it sends to domains, its own among them.
  double tokens_to_domains() const;
};

/// Whether the plan has experts and the dispatcher flex.
bool dispatches_experts(const Plan& plan);

ExpertDispatch expert_dispatch(const Plan& plan,
                               const ParallelLayout& layout,
                               const Fabric& fabric);

/// Seconds of a dispatch, or of a combine, of bf16 rows.
double expert_dispatch_seconds(const ExpertDispatch& call, const Fabric& fabric, bool combines);

/// Bytes of the buffers of DeepEP or HybridEP, outside PyTorch's allocator. Throws UserError for a
/// number of ranks for which DeepEP has no configuration.
int64_t expert_dispatch_buffer_bytes(const ExpertDispatch& call);

}  // namespace estimator
