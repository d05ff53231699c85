// The control functions of the virtual GPU (sim/virtual_gpu/control.h), if this process has one.
#pragma once

#include "sim/virtual_gpu/control.h"

namespace sim {

/// The functions are found at run time. On a real GPU there are none, and every pointer is null.
struct VirtualGpu {
  /// Larger values are not followed.
  uint64_t largest_bytes = 0;
  uint64_t largest_integer_bytes = 0;  ///< the same of integers and truth values
  decltype(&onerank_virtual_gpu_most_used_bytes) most_used_bytes = nullptr;
  decltype(&onerank_virtual_gpu_outside_bytes) outside_bytes = nullptr;
  decltype(&onerank_virtual_gpu_remember_values) remember_values = nullptr;
  decltype(&onerank_virtual_gpu_remember_here) remember_here = nullptr;
  decltype(&onerank_virtual_gpu_set_invention_sink) set_invention_sink = nullptr;
  decltype(&onerank_virtual_gpu_answer_here) answer_here = nullptr;
  decltype(&onerank_virtual_gpu_peek) peek = nullptr;
  decltype(&onerank_virtual_gpu_poke) poke = nullptr;
  decltype(&onerank_virtual_gpu_send) send = nullptr;
  decltype(&onerank_virtual_gpu_clock) clock = nullptr;
  decltype(&onerank_virtual_gpu_forget) forget = nullptr;
  decltype(&onerank_virtual_gpu_forget_computed) forget_computed = nullptr;
  decltype(&onerank_virtual_gpu_set_event_sink) set_event_sink = nullptr;
  decltype(&onerank_virtual_gpu_set_timer) set_timer = nullptr;
  decltype(&onerank_virtual_gpu_ask_for_arguments) ask_for_arguments = nullptr;
  decltype(&onerank_virtual_gpu_stream_number) stream_number = nullptr;
  decltype(&onerank_virtual_gpu_capture_mark) capture_mark = nullptr;
  decltype(&onerank_virtual_gpu_visit_kernels) visit_kernels = nullptr;
  decltype(&onerank_virtual_gpu_visit_gemms) visit_gemms = nullptr;

  explicit operator bool() const { return forget != nullptr; }
};

/// Largest flags, sizes and pickles that programs send through the device.
inline constexpr uint64_t kLargestControlBytes = uint64_t{1} << 20;
/// Largest tensors with one floating-point value for each token of a micro-batch (weights of a
/// loss).
inline constexpr uint64_t kLargestTokenBytes = uint64_t{256} << 10;
/// Largest tensors of integers or truth values (labels, positions, masks, edges of a graph): they
/// decide counts, and few operators of a program read them.
inline constexpr uint64_t kLargestIntegerBytes = uint64_t{16} << 20;
/// Largest tensors with one value for each token and expert, which are followed if a router is
/// assumed.
inline constexpr uint64_t kLargestRoutingBytes = uint64_t{16} << 20;

VirtualGpu find_virtual_gpu(uint64_t largest_bytes);

}  // namespace sim
