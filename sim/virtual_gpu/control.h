#pragma once

#include <stdint.h>

/// How the program that hosts the virtual GPU steers and reads it. The functions are exported by
/// the stub of the CUDA runtime; find them with dlsym(RTLD_DEFAULT, "<name>"): where that gives
/// null, the process has no virtual GPU. All of them may be called from any thread.
extern "C" {

/// Gives every device this much memory instead of what ONERANK_VIRTUAL_GPU says, for example to
/// lift the limit and learn how much a program would take. cudaMemGetInfo and
/// cudaGetDeviceProperties report it. Call it before the first allocation; later it changes nothing
/// and says so on stderr.
void onerank_virtual_gpu_set_memory_bytes(uint64_t memory_bytes);

/// Bytes taken from all devices now: cudaMalloc in whole pages of 2 MiB, cuMemCreate, and what is
/// outside of them.
uint64_t onerank_virtual_gpu_used_bytes(void);

/// Bytes that every device lacks from the start, for what no allocator makes (ONERANK_VIRTUAL_GPU).
uint64_t onerank_virtual_gpu_outside_bytes(void);

/// Kernels launched since the start of the process, those of cuBLAS and NCCL not counted.
uint64_t onerank_virtual_gpu_kernel_launches(void);

/// Copies from a device to the host since the start of the process. What is not remembered (see
/// below) reads as zeros, so what the program decides by it (a loss, a count, a flag) is not to be
/// relied on.
uint64_t onerank_virtual_gpu_host_reads(void);

/// Calls `sink` for each read that was answered, wholly or in part, with invented bytes, on the
/// reading thread. One sink at a time; null: none.
void onerank_virtual_gpu_set_invention_sink(void (*sink)(uint64_t bytes, void* context),
                                            void* context);

/// From now on remembers values of at most `largest_bytes` that the host writes (cudart/shadow.h).
/// For who also calls forget(): else a value that a kernel has changed since would come back as it
/// was written.
void onerank_virtual_gpu_remember_values(uint64_t largest_bytes);

/// From now on this thread's copies and fills only make what was there unknown (`remember` 0), or
/// are remembered again (1). For who knows that what they write is nothing to read back.
void onerank_virtual_gpu_remember_here(int remember);

/// Until the next call, this thread's reads of at most eight bytes that are not known are answered
/// with `*number`, in as many bytes (null: with zeros). For who knows what the kernels of the
/// operator that runs now compute for their own host code. Returns what was there before.
const int64_t* onerank_virtual_gpu_answer_here(const int64_t* number);

/// What device memory is known to hold. peek() is not 0 if all of it is known, and then fills
/// `value`, unless that is null: 1 if the device made all of it, 2 if some of it is the host's.
/// poke() makes known what the device computed, send() what is the host's. forget() says that a
/// kernel may have written there since the moment that clock() gave: what was known before is not
/// any more. forget_computed() says so of all that fills and poke() left anywhere.
int onerank_virtual_gpu_peek(const void* address, uint64_t bytes, void* value);
void onerank_virtual_gpu_poke(void* address, uint64_t bytes, const void* value);
void onerank_virtual_gpu_send(void* address, uint64_t bytes, const void* value);
uint64_t onerank_virtual_gpu_clock(void);
void onerank_virtual_gpu_forget(const void* address, uint64_t bytes, uint64_t before);
void onerank_virtual_gpu_forget_computed(void);

/// From now on calls `sink` at each launch, on the launching thread, with the addresses of device
/// memory that the kernel was given: itself, in a structure, or in a tensor map. `count` is -1
/// where its code does not tell how long its parameters are; only cubins loaded by the driver do.
void onerank_virtual_gpu_set_launch_sink(
    void (*sink)(const uint64_t* addresses, int64_t count, void* context), void* context);

/// Calls `visit` for every kernel that was launched, in no order. `name` is mangled.
void onerank_virtual_gpu_visit_kernels(
    void (*visit)(const char* name, uint64_t launches, void* context), void* context);

/// Matrix products of one shape that cuBLAS and cuBLASLt were asked for: `count` calls, each of
/// `batch` products of an m x k matrix with a k x n one. The convention is cuBLAS's (column-major),
/// in which PyTorch asks for the transposed product: its m is your n.
struct onerank_virtual_gpu_gemm {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;
  uint64_t count;
};

/// Calls `visit` for every shape, in increasing order of (m, n, k, batch).
void onerank_virtual_gpu_visit_gemms(void (*visit)(const struct onerank_virtual_gpu_gemm* gemm,
                                                   void* context),
                                     void* context);
}
