// Runs a rank of a small plan and gives its profile.
#pragma once

#include <cstdint>

#include "estimator/base/fields.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace sim {

/// A GPT (LayerNorm, GELU, biases, dropout 0.1) of 2 layers, hidden 1024, 16 heads, sequence 512,
/// micro-batch 4 of 16, fp16, unfused attention on A100s; `changes` is merged in.
estimator::Plan gpt_plan(const estimator::Json& changes = estimator::Json::object());

/// What `onerank run --device virtual` makes of `rank`.
estimator::RankProfile execute(const estimator::Plan& plan, int64_t rank = 0);

}  // namespace sim
