#pragma once

#include <list>
#include <map>
#include <mutex>
#include <string>

#include "sim/virtual_gpu/cudart/kernel_table.h"

/// A kernel found by name in a module. Its address stands for it in the kernel table, so functions
/// and names live as long as the process.
struct CUfunc_st {
  std::string name;
};

/// Code loaded at run time (a cubin of NVRTC or Triton). Every name is found in it; a cubin tells
/// of its kernels.
struct CUmod_st {
  const std::map<std::string, virtual_gpu::KernelCode> kernels;
  std::mutex mutex;
  std::list<CUfunc_st> functions;
};
