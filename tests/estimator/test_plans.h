// Small plans and profiles for tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimator/base/fields.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

/// A GPT of 8 layers, hidden size 64, 8 heads, on 8 H100 of one machine, all alike: data parallel,
/// 8 samples.
Json small_tree();

/// small_tree() with changes (RFC 7396: null removes a key), resolved.
Plan small_plan(const Json& changes = Json::object(), const PlanContext& context = {});

/// 1F1B over 4 stages with 8 micro-batches on 4 GPUs.
Plan pipeline_plan(const Json& changes = Json::object());

/// Llama-3 405B on 16,384 H100 in Meta's published layout.
Plan meta_plan();

/// What a call that must throw UserError complains of; "" when it throws nothing.
std::string complaint_of(const std::function<void()>& call);

bool contains(const std::string& text, const std::string& part);

/// The complaint about small_tree() with changes.
std::string complaint_about(const Json& changes, const PlanContext& context = {});

/// One call of a collective, by a group that is given beside it.
CollectiveCall call_of(CollectiveKind kind, int64_t bytes);

/// Kernels of no work, which take nothing but the time to call them.
OperatorRecord kernels(Direction direction, double seconds_per_iteration);

CollectiveRecord collectives(Direction direction, const CollectiveCall& call, int64_t count);

/// A profile of `rank` that says whose it is, and nothing of what it did.
RankProfile profile_without_work(const Plan& plan, int64_t rank);

/// A profile of `rank` as `onerank run` would leave it: `reserved_bytes`, and kernels of
/// `forward_seconds` and `backward_seconds` in each micro-batch.
RankProfile profile_of(const Plan& plan,
                       int64_t rank,
                       double forward_seconds = 1e-3,
                       double backward_seconds = 2e-3,
                       int64_t reserved_bytes = int64_t{10} << 30);

/// A profile for each class of ranks, all alike.
std::vector<RankProfile> profiles_of(const Plan& plan);

}  // namespace estimator
