#include "sim/exec/virtual_gpu_control.h"

#include <dlfcn.h>

namespace sim {
namespace {

template <class Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

VirtualGpu find_virtual_gpu(uint64_t largest_bytes) {
  VirtualGpu gpu;
  gpu.largest_bytes = largest_bytes;
  find(gpu.most_used_bytes, "onerank_virtual_gpu_most_used_bytes");
  find(gpu.outside_bytes, "onerank_virtual_gpu_outside_bytes");
  find(gpu.remember_values, "onerank_virtual_gpu_remember_values");
  find(gpu.remember_here, "onerank_virtual_gpu_remember_here");
  find(gpu.set_invention_sink, "onerank_virtual_gpu_set_invention_sink");
  find(gpu.answer_here, "onerank_virtual_gpu_answer_here");
  find(gpu.peek, "onerank_virtual_gpu_peek");
  find(gpu.poke, "onerank_virtual_gpu_poke");
  find(gpu.send, "onerank_virtual_gpu_send");
  find(gpu.clock, "onerank_virtual_gpu_clock");
  find(gpu.forget, "onerank_virtual_gpu_forget");
  find(gpu.forget_computed, "onerank_virtual_gpu_forget_computed");
  find(gpu.set_event_sink, "onerank_virtual_gpu_set_event_sink");
  find(gpu.ask_for_arguments, "onerank_virtual_gpu_ask_for_arguments");
  find(gpu.stream_number, "onerank_virtual_gpu_stream_number");
  find(gpu.visit_kernels, "onerank_virtual_gpu_visit_kernels");
  find(gpu.visit_gemms, "onerank_virtual_gpu_visit_gemms");
  return gpu;
}

}  // namespace sim
