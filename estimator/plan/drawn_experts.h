// Experts of a token that are drawn uniformly, as --moe-router-force-load-balancing draws them, and
// the kernels of Megatron-LM's dispatcher flex that send tokens to them.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/plan/model_config.h"

namespace estimator {

/// What the shard records a dispatch and a combine as.
inline constexpr std::string_view kDispatchKernel = "ep::dispatch", kCombineKernel = "ep::combine";

/// The experts of a token.
struct ExpertDraw {
  int64_t experts = 0;
  int64_t topk = 1;
  int64_t groups = 0;      ///< of experts that follow each other; 0: there are none
  int64_t group_topk = 0;  ///< groups of which all experts of a token are
};
ExpertDraw draw_of(const ModelConfig& model);

/// The chance that one of a token's experts is one of `run` experts that follow each other, and
/// begin where a group or a part of one does.
double chance_of_any(const ExpertDraw& draw, int64_t run);

}  // namespace estimator
