#pragma once

#include <cstdint>

#include "sim/virtual_gpu/kernels/cubin.h"
#include "sim/virtual_gpu/kernels/kernel_facts.h"

namespace virtual_gpu {

/// A launch whose arguments can be read: `arguments` points to one value for each parameter.
struct ReadableLaunch {
  const char* kernel;  // mangled
  const ParameterBytes& parameters;
  void* const* arguments;
  const LaunchShape& shape;
};

/// The bytes that the launch reads and writes, if it is of a kind whose arguments tell them; else
/// 0. What is told of the others is where their tensors are, and not how much of them they move.
uint64_t bytes_told_by(const ReadableLaunch& launch);

}  // namespace virtual_gpu
