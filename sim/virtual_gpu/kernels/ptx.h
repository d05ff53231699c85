#pragma once

#include <string_view>

#include "sim/virtual_gpu/kernels/cubin.h"

namespace virtual_gpu {

/// The kernels that a PTX text defines, with the sizes of their parameters. What else they need is
/// known only when they are compiled.
KernelCodes kernels_in_ptx(std::string_view text);

}  // namespace virtual_gpu
