#include "sim/virtual_gpu/control.h"

#include <cstdio>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/copy.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/shared_descriptor.h"
#include "sim/virtual_gpu/cudart/stream.h"

using virtual_gpu::capture;
using virtual_gpu::device;
using virtual_gpu::kernels;
using virtual_gpu::shadow;
using virtual_gpu::work_log;

void onerank_virtual_gpu_set_memory_bytes(uint64_t memory_bytes) {
  if (device() != nullptr && !device()->memory.set_capacity_bytes(memory_bytes)) {
    std::fprintf(stderr,
                 "onerank: the virtual GPU's memory cannot change after the first allocation\n");
  }
}

uint64_t onerank_virtual_gpu_used_bytes() {
  if (device() == nullptr) return 0;
  uint64_t bytes = 0;
  for (int ordinal = 0; ordinal < device()->spec.device_count; ++ordinal) {
    bytes += device()->memory.used_bytes(ordinal);
  }
  return bytes;
}

uint64_t onerank_virtual_gpu_most_used_bytes(int ordinal) {
  const bool is_there =
      device() != nullptr && ordinal >= 0 && ordinal < device()->spec.device_count;
  return is_there ? device()->memory.most_used_bytes(ordinal) : 0;
}

uint64_t onerank_virtual_gpu_outside_bytes() {
  return device() == nullptr ? 0 : static_cast<uint64_t>(device()->spec.outside_bytes);
}

uint64_t onerank_virtual_gpu_kernel_launches() { return kernels().launches(); }

uint64_t onerank_virtual_gpu_host_reads() { return work_log().host_reads(); }

void onerank_virtual_gpu_set_invention_sink(void (*sink)(const void*, uint64_t, void*),
                                            void* context) {
  if (sink == nullptr) return work_log().set_invention_sink({});
  work_log().set_invention_sink(
      [=](const void* address, size_t bytes) { sink(address, bytes, context); });
}

void onerank_virtual_gpu_remember_values(uint64_t largest_bytes) { shadow().enable(largest_bytes); }

const int64_t* onerank_virtual_gpu_answer_here(const int64_t* number) {
  return virtual_gpu::answer_unknown_reads_here(number);
}

void onerank_virtual_gpu_remember_here(int remember) { shadow().remember_here(remember != 0); }

int onerank_virtual_gpu_peek(const void* address, uint64_t bytes, void* value) {
  const auto first = reinterpret_cast<uint64_t>(address);
  const auto origin =
      value == nullptr ? shadow().knows(first, bytes) : shadow().read(first, value, bytes);
  if (!origin) return 0;
  return *origin == virtual_gpu::Shadow::Origin::kDevice ? 1 : 2;
}

void onerank_virtual_gpu_poke(void* address, uint64_t bytes, const void* value) {
  capture().values_change(reinterpret_cast<uint64_t>(address), bytes);
  shadow().tell(
      reinterpret_cast<uint64_t>(address), value, bytes, virtual_gpu::Shadow::Origin::kDevice);
}

void onerank_virtual_gpu_send(void* address, uint64_t bytes, const void* value) {
  capture().values_change(reinterpret_cast<uint64_t>(address), bytes);
  shadow().tell(
      reinterpret_cast<uint64_t>(address), value, bytes, virtual_gpu::Shadow::Origin::kHost);
}

uint64_t onerank_virtual_gpu_clock() { return shadow().time(); }

void onerank_virtual_gpu_forget(const void* address, uint64_t bytes, uint64_t before) {
  capture().values_change(reinterpret_cast<uint64_t>(address), bytes);
  shadow().forget(reinterpret_cast<uint64_t>(address), bytes, before);
}

void onerank_virtual_gpu_forget_computed() { shadow().forget_computed(); }

int onerank_virtual_gpu_is_of_others(const void* address) {
  const bool is_of_others =
      device() != nullptr && device()->memory.is_adopted(reinterpret_cast<uint64_t>(address));
  return is_of_others ? 1 : 0;
}

int onerank_virtual_gpu_multicast_of_others() {
  return virtual_gpu::make_descriptor({.is_multicast = true});
}

void onerank_virtual_gpu_set_event_sink(void (*sink)(const onerank_virtual_gpu_event*, void*),
                                        void* context) {
  work_log().set_event_sink([=](const onerank_virtual_gpu_event& event) { sink(&event, context); });
}

void onerank_virtual_gpu_set_timer(double (*seconds_between)(uint64_t, uint64_t, void*),
                                   void* context) {
  work_log().set_timer(
      [=](uint64_t start, uint64_t end) { return seconds_between(start, end, context); });
}

void onerank_virtual_gpu_ask_for_arguments(int (*are_wanted)(void*), void* context) {
  work_log().set_wants_arguments([=] { return are_wanted(context) != 0; });
}

int onerank_virtual_gpu_stream_number(void* stream) {
  return virtual_gpu::sequence_of(static_cast<CUstream_st*>(stream));
}

uint64_t onerank_virtual_gpu_capture_mark(void* stream) {
  return capture().keep({.event = {.kind = ONERANK_VIRTUAL_GPU_MARK}},
                        static_cast<CUstream_st*>(stream));
}

void onerank_virtual_gpu_visit_kernels(void (*visit)(const char*, uint64_t, void*), void* context) {
  kernels().visit(
      [=](const virtual_gpu::Kernel& kernel) { visit(kernel.name, kernel.launches, context); });
}

void onerank_virtual_gpu_visit_gemms(void (*visit)(const onerank_virtual_gpu_gemm*, void*),
                                     void* context) {
  work_log().visit_gemms([=](const virtual_gpu::GemmShape& shape, uint64_t count) {
    const onerank_virtual_gpu_gemm gemm{shape.m, shape.n, shape.k, shape.batch, count};
    visit(&gemm, context);
  });
}
