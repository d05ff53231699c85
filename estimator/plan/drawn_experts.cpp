#include "estimator/plan/drawn_experts.h"

#include <algorithm>

namespace estimator {
namespace {

/// That one of `drawn` of `all`, drawn without putting back, is one of `chosen` ones.
double chance_of_one(int64_t all, int64_t chosen, int64_t drawn) {
  double none = 1;
  for (int64_t i = 0; i < drawn; ++i) {
    none *= std::max(0.0, static_cast<double>(all - chosen - i)) / static_cast<double>(all - i);
  }
  return 1 - none;
}

double binomial(int64_t all, int64_t chosen) {
  if (chosen < 0 || chosen > all) return 0;
  double ways = 1;
  for (int64_t i = 0; i < chosen; ++i) {
    ways *= static_cast<double>(all - i) / static_cast<double>(i + 1);
  }
  return ways;
}

}  // namespace

ExpertDraw draw_of(const ModelConfig& model) {
  return {.experts = model.num_experts,
          .topk = model.moe_router_topk,
          .groups = model.moe_router_num_groups,
          .group_topk = model.moe_router_group_topk};
}

/// The groups of a token are drawn first, and then its experts, of all that these groups have.
double chance_of_any(const ExpertDraw& draw, int64_t run) {
  if (draw.groups == 0) return chance_of_one(draw.experts, run, draw.topk);
  const int64_t of_group = draw.experts / draw.groups;
  const int64_t groups = std::max<int64_t>(1, run / of_group);  // that the run touches
  double chance = 0;
  for (int64_t drawn = 1; drawn <= std::min(groups, draw.group_topk); ++drawn) {
    const double ways = binomial(groups, drawn) *
                        binomial(draw.groups - groups, draw.group_topk - drawn) /
                        binomial(draw.groups, draw.group_topk);
    chance += ways *
              chance_of_one(draw.group_topk * of_group, drawn * std::min(run, of_group), draw.topk);
  }
  return chance;
}

}  // namespace estimator
