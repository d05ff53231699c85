// The virtual GPU's functions (sim/virtual_gpu/control.h) as this process has them.
#pragma once

#include "sim/virtual_gpu/control.h"

namespace sim {

/// Found at run time. On a real GPU there are none, and every pointer is null.
struct VirtualGpu {
  decltype(&onerank_virtual_gpu_remember_values) remember_values = nullptr;
  decltype(&onerank_virtual_gpu_remember_here) remember_here = nullptr;
  decltype(&onerank_virtual_gpu_set_invention_sink) set_invention_sink = nullptr;
  decltype(&onerank_virtual_gpu_peek) peek = nullptr;
  decltype(&onerank_virtual_gpu_poke) poke = nullptr;
  decltype(&onerank_virtual_gpu_send) send = nullptr;
  decltype(&onerank_virtual_gpu_clock) clock = nullptr;
  decltype(&onerank_virtual_gpu_forget) forget = nullptr;
  decltype(&onerank_virtual_gpu_forget_computed) forget_computed = nullptr;
  decltype(&onerank_virtual_gpu_set_launch_sink) set_launch_sink = nullptr;
  decltype(&onerank_virtual_gpu_visit_kernels) visit_kernels = nullptr;
  decltype(&onerank_virtual_gpu_visit_gemms) visit_gemms = nullptr;

  explicit operator bool() const { return forget != nullptr; }
};

VirtualGpu find_virtual_gpu();

}  // namespace sim
