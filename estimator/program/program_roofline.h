// What bounds the step of a program: its kernels against the roofline of their GPU, and what its
// replay waits for.
#pragma once

#include "estimator/cluster/roofline.h"
#include "estimator/program/program_replay.h"

namespace estimator {

/// Of the replayed rank that computes longest. Layers count as one module ("layers.*.mlp").
///
/// Every moment of its iteration has one cause: of kernels that run at the same time each has its
/// part; communication counts where no kernel runs; where nothing runs, the host if it has not yet
/// asked for what runs next (launches), else the ranks that it waits for (bubble). The step with
/// something twice as fast is that of a replay in which all such works take half as long; for the
/// bubble it is half of the waiting less.
Roofline program_roofline(const ProgramReplay& replayed);

}  // namespace estimator
