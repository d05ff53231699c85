// Finds the control functions (control.h) in a process that may have a virtual GPU.
#pragma once

#include <dlfcn.h>

#include "sim/virtual_gpu/control.h"

/// The control function of this name, or null on a real GPU.
#define ONERANK_FIND_CONTROL(function) \
  reinterpret_cast<decltype(&function)>(dlsym(RTLD_DEFAULT, #function))
