// Kernels that were launched on the virtual GPU, and matrix products that cuBLAS was asked for, in
// the form of a profile.
#pragma once

#include <vector>

#include "estimator/profile/program_record.h"
#include "sim/exec/virtual_gpu_control.h"

namespace sim {

std::vector<estimator::KernelRecord> kernel_records(const VirtualGpu& gpu);
std::vector<estimator::GemmRecord> gemm_records(const VirtualGpu& gpu);

}  // namespace sim
