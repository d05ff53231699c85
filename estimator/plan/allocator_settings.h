// The settings of PyTorch's allocator (PYTORCH_CUDA_ALLOC_CONF), as torch 2.11 reads them. It ends
// the process on some mistakes, so they are found before.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/errors.h"

namespace estimator {

/// What is wrong with "key:value,key:[a:b,c:d]", or nothing; `where` says where it was given.
std::optional<Problem> find_allocator_problem(std::string_view settings, const std::string& where);

}  // namespace estimator
