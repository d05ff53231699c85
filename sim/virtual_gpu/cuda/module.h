#pragma once

#include <list>
#include <mutex>
#include <string>

/// A kernel found by name in a module. Its address stands for it in the kernel table, so functions
/// and names live as long as the process.
struct CUfunc_st {
  std::string name;
};

/// Code loaded at run time (a cubin of NVRTC or Triton). It is not read: every name is found in it.
struct CUmod_st {
  std::mutex mutex;
  std::list<CUfunc_st> functions;
};
