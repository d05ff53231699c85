#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/virtual_gpu/cudart/kernel_table.h"

namespace virtual_gpu {

/// The parameters of each kernel that a cubin holds, by its name. Empty for code of another kind;
/// of a damaged cubin, those that are whole.
std::map<std::string, ParameterBytes> parameters_in(std::string_view image);

}  // namespace virtual_gpu
