// The memory of each class of ranks, and the verdict over all classes.
#pragma once

#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The row of one class, with its memory terms and their sum. Seconds are left at 0.
RankClassEstimate class_memory(const Plan& plan,
                               const RankClass& rank_class,
                               const RankProfile& profile,
                               const ParallelLayout& layout,
                               const Fabric& fabric);

/// The same of a rank of a program, whose communicators are known from its calls.
RankClassEstimate program_memory(const RankProfile& profile, const Gpu& gpu, const Fabric& fabric);

/// Of what needs at least `low_bytes` and at most `high_bytes`.
Fit fit_of(int64_t low_bytes, int64_t high_bytes, int64_t limit_bytes);

/// "fits", "too close to call", "does not fit"
std::string fit_words(Fit fit);

/// The verdict over all classes is the worst of their verdicts. The limit is the GPU's memory less
/// `headroom_bytes`. A class fits when the upper end of its total is within the limit. It does
/// not fit when the lower end is above the limit, or when its rank ran only after the limit was
/// lifted. (A rank can run out of memory although its total fits, if its free blocks are too
/// small.) The worst rank is the one that needs most memory, among those with the worst verdict.
Verdict memory_verdict(int64_t headroom_bytes,
                       const Gpu& gpu,
                       const std::vector<RankClassEstimate>& classes);

}  // namespace estimator
