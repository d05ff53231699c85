#pragma once

#include <string>
#include <string_view>

namespace virtual_gpu {

/// What the compiled code of a CUDA C++ source would say of its kernels, as PTX without bodies: one
/// `.entry NAME(.param .b64 p, ...)` for each kernel whose parameters are pointers and numbers of
/// C++'s own types. Others (structures, types of a template) are left out: their size is not known.
std::string ptx_of_kernels(std::string_view source);

}  // namespace virtual_gpu
