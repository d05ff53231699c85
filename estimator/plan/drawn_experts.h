// Experts of a token that are drawn uniformly, as --moe-router-force-load-balancing draws them, and
// the kernels of Megatron-LM's dispatcher flex that send tokens to them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace estimator {

/// What the shard records a dispatch and a combine as.
inline constexpr std::string_view kDispatchKernel = "ep::dispatch", kCombineKernel = "ep::combine";

/// The chance that one of `topk` of `experts`, drawn without putting back, is one of `chosen` ones.
inline double chance_of_any(int64_t experts, int64_t chosen, int64_t topk) {
  double none = 1;
  for (int64_t i = 0; i < topk; ++i) {
    none *=
        std::max(0.0, static_cast<double>(experts - chosen - i)) / static_cast<double>(experts - i);
  }
  return 1 - none;
}

}  // namespace estimator
