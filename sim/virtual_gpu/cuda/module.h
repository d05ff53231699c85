#pragma once

#include <list>
#include <mutex>
#include <string>

#include "sim/virtual_gpu/kernels/kernel_table.h"

/// A kernel that was found by name in a module. Its address identifies it in the kernel table, so
/// this object and its name live as long as the process.
struct CUfunc_st {
  std::string name;
};

/// Code that was loaded at run time (a cubin of NVRTC or Triton). Looking up any name in it
/// succeeds; `kernels` has what a cubin or PTX says about its kernels.
struct CUmod_st {
  const virtual_gpu::KernelCodes kernels;
  std::mutex mutex;
  std::list<CUfunc_st> functions;
};
