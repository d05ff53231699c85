// Does it fit: the memory of each class of ranks, and the verdict over all of them.
#pragma once

#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The row of a class: memory terms and their sum. Seconds are left at 0.
RankClassEstimate class_memory(const Plan& plan,
                               const RankClass& rank_class,
                               const RankProfile& profile,
                               const ParallelLayout& layout,
                               const Fabric& fabric);

/// The same of a rank of a program, whose communicators are known from its calls.
RankClassEstimate program_memory(const RankProfile& profile, const Gpu& gpu, const Fabric& fabric);

/// "fits", "too close to call", "does not fit"
std::string fit_words(Fit fit);

/// The verdict over all classes is that of the worst. A class fits when the upper end of its total
/// is within the GPU's memory less the headroom, and does not fit when the lower end is not,
/// or when it ran only without the limit. (A rank can run out though its total fits: its free
/// blocks were too small.) The worst rank is the one that needs most, among those of the worst
/// verdict.
Verdict memory_verdict(int64_t headroom_bytes,
                       const Gpu& gpu,
                       const std::vector<RankClassEstimate>& classes);

}  // namespace estimator
