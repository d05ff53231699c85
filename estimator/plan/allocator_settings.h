// Checks the settings of PyTorch's caching allocator (PYTORCH_CUDA_ALLOC_CONF), as torch 2.11 reads
// them. Some mistakes make PyTorch end the process, so they are found before it reads them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/errors.h"

namespace estimator {

/// The problem with settings such as "key:value,key:[a:b,c:d]", or empty if there is none. `where`
/// says where they were given.
std::optional<Problem> find_allocator_problem(std::string_view settings, const std::string& where);

}  // namespace estimator
