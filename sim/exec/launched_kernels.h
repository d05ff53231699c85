// Kernels and matrix products that the virtual GPU was asked for, as a profile writes them.
#pragma once

#include <vector>

#include "estimator/profile/program_record.h"
#include "sim/exec/virtual_gpu_control.h"

namespace sim {

std::vector<estimator::KernelRecord> kernel_records(const VirtualGpu& gpu);
std::vector<estimator::GemmRecord> gemm_records(const VirtualGpu& gpu);

}  // namespace sim
