#include "sim/exec/program/virtual_gpu_control.h"

#include <algorithm>

#include "sim/virtual_gpu/find_control.h"

namespace sim {

VirtualGpu find_virtual_gpu(uint64_t largest_bytes) {
  VirtualGpu gpu;
  gpu.largest_bytes = largest_bytes;
  gpu.largest_integer_bytes = std::max(largest_bytes, kLargestIntegerBytes);
  gpu.most_used_bytes = ONERANK_FIND_CONTROL(onerank_virtual_gpu_most_used_bytes);
  gpu.outside_bytes = ONERANK_FIND_CONTROL(onerank_virtual_gpu_outside_bytes);
  gpu.remember_values = ONERANK_FIND_CONTROL(onerank_virtual_gpu_remember_values);
  gpu.remember_here = ONERANK_FIND_CONTROL(onerank_virtual_gpu_remember_here);
  gpu.set_invention_sink = ONERANK_FIND_CONTROL(onerank_virtual_gpu_set_invention_sink);
  gpu.answer_here = ONERANK_FIND_CONTROL(onerank_virtual_gpu_answer_here);
  gpu.peek = ONERANK_FIND_CONTROL(onerank_virtual_gpu_peek);
  gpu.poke = ONERANK_FIND_CONTROL(onerank_virtual_gpu_poke);
  gpu.send = ONERANK_FIND_CONTROL(onerank_virtual_gpu_send);
  gpu.clock = ONERANK_FIND_CONTROL(onerank_virtual_gpu_clock);
  gpu.forget = ONERANK_FIND_CONTROL(onerank_virtual_gpu_forget);
  gpu.forget_computed = ONERANK_FIND_CONTROL(onerank_virtual_gpu_forget_computed);
  gpu.set_event_sink = ONERANK_FIND_CONTROL(onerank_virtual_gpu_set_event_sink);
  gpu.set_timer = ONERANK_FIND_CONTROL(onerank_virtual_gpu_set_timer);
  gpu.ask_for_arguments = ONERANK_FIND_CONTROL(onerank_virtual_gpu_ask_for_arguments);
  gpu.stream_number = ONERANK_FIND_CONTROL(onerank_virtual_gpu_stream_number);
  gpu.capture_mark = ONERANK_FIND_CONTROL(onerank_virtual_gpu_capture_mark);
  gpu.visit_kernels = ONERANK_FIND_CONTROL(onerank_virtual_gpu_visit_kernels);
  gpu.visit_gemms = ONERANK_FIND_CONTROL(onerank_virtual_gpu_visit_gemms);
  return gpu;
}

}  // namespace sim
