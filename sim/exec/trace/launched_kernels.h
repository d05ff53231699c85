// Kernels that were launched on the virtual GPU, matrix products that cuBLAS was asked for, and the
// operators that were counted, in the form of a profile.
#pragma once

#include <string>
#include <vector>

#include "estimator/profile/program_record.h"
#include "estimator/profile/rank_profile.h"
#include "sim/exec/program/virtual_gpu_control.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

std::vector<estimator::KernelRecord> kernel_records(const VirtualGpu& gpu);
std::vector<estimator::GemmRecord> gemm_records(const VirtualGpu& gpu);
/// `phases` are the names of all phases that the tracker knows.
std::vector<estimator::OperatorRecord> counted_operators(const TrackedRun& tracker,
                                                         const std::vector<std::string>& phases);

}  // namespace sim
