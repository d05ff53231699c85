#pragma once

#include <map>
#include <string>

#include "sim/virtual_gpu/cudart/kernel_table.h"

namespace virtual_gpu {

/// The parameters of each kernel that a cubin holds, by its name. Empty for code of another kind,
/// and null.
std::map<std::string, ParameterBytes> parameters_in(const void* image);

}  // namespace virtual_gpu
