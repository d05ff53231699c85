#pragma once

#include <stdint.h>

/// The functions by which the program that hosts the virtual GPU controls and reads it. The stub of
/// the CUDA runtime exports them; find them with dlsym(RTLD_DEFAULT, "<name>"). If that returns
/// null, the process has no virtual GPU. All of them may be called from any thread.
extern "C" {

/// Gives every device this much memory instead of what ONERANK_VIRTUAL_GPU says, for example to
/// lift the limit and learn how much memory a program would take. cudaMemGetInfo and
/// cudaGetDeviceProperties report it. Call it before the first allocation; after that it changes
/// nothing and says so on stderr.
void onerank_virtual_gpu_set_memory_bytes(uint64_t memory_bytes);

/// Bytes in use on all devices together: by cudaMalloc in whole pages of 2 MiB, by cuMemCreate, and
/// the outside bytes (see the next function).
uint64_t onerank_virtual_gpu_used_bytes(void);

/// The most bytes that were ever in use at once on the device with this number, counted as above; 0
/// if there is no such device.
uint64_t onerank_virtual_gpu_most_used_bytes(int device);

/// Bytes that are in use on every device from the start, for memory that no allocator makes
/// (ONERANK_VIRTUAL_GPU).
uint64_t onerank_virtual_gpu_outside_bytes(void);

/// Number of kernels launched since the start of the process, without those of cuBLAS and NCCL.
uint64_t onerank_virtual_gpu_kernel_launches(void);

/// Number of copies from a device to the host since the start of the process. Values that are not
/// remembered (see below) read as zeros, so decisions that the program bases on them (on a loss, a
/// count, a flag) are not reliable.
uint64_t onerank_virtual_gpu_host_reads(void);

/// From now on calls `sink`, on the reading thread, for each read that was answered fully or partly
/// with invented bytes, with the address that was read. There is one sink at a time; null means
/// none.
void onerank_virtual_gpu_set_invention_sink(
    void (*sink)(const void* address, uint64_t bytes, void* context), void* context);

/// From now on remembers values of at most `largest_bytes` that the host writes (cudart/shadow.h).
/// The caller must also call forget() when kernels write; else a read would return the old value
/// after a kernel has changed it.
void onerank_virtual_gpu_remember_values(uint64_t largest_bytes);

/// `remember` 0: from now on copies and fills of this thread are not remembered, and only make the
/// old values unknown. 1: they are remembered again. Use 0 for writes that nobody reads back.
void onerank_virtual_gpu_remember_here(int remember);

/// Until the next call of this function, reads of this thread of at most eight unknown bytes are
/// answered with `*number`, in as many bytes; null means zeros. It is for callers that know what
/// the running operator's kernels compute for the operator's host code. Returns the pointer that
/// was set before.
const int64_t* onerank_virtual_gpu_answer_here(const int64_t* number);

/// The known values of device memory. peek() returns 0 if some of the bytes are unknown. Else it
/// copies them to `value` (unless that is null) and returns 1 if the device made all of them, or
/// ONERANK_VIRTUAL_GPU_OF_THE_HOST if some came from the host. poke() sets values that the device
/// computed, send() values from the host. forget() says that a kernel may have written to the
/// range, so that values from before the moment `before` (from clock()) are unknown again.
/// forget_computed() does this for all values that fills and poke() have set anywhere.
enum { ONERANK_VIRTUAL_GPU_OF_THE_HOST = 2 };  ///< what peek() returns of such bytes
int onerank_virtual_gpu_peek(const void* address, uint64_t bytes, void* value);
void onerank_virtual_gpu_poke(void* address, uint64_t bytes, const void* value);
void onerank_virtual_gpu_send(void* address, uint64_t bytes, const void* value);
uint64_t onerank_virtual_gpu_clock(void);
void onerank_virtual_gpu_forget(const void* address, uint64_t bytes, uint64_t before);
void onerank_virtual_gpu_forget_computed(void);

/// 1 if memory of other processes' devices is mapped at `address` (cuMemImportFromShareableHandle,
/// a multicast object), else 0.
int onerank_virtual_gpu_is_of_others(const void* address);

/// A new file descriptor, for the caller to close, of a multicast object that another process made.
/// -1 if the system gives none.
int onerank_virtual_gpu_multicast_of_others(void);

/// What a program asks of the device, and what it waits for.
enum onerank_virtual_gpu_event_kind {
  ONERANK_VIRTUAL_GPU_KERNEL,
  ONERANK_VIRTUAL_GPU_PRODUCT,  ///< a call of cuBLAS or cuBLASLt, or a convolution of cuDNN
  ONERANK_VIRTUAL_GPU_COPY,
  ONERANK_VIRTUAL_GPU_FILL,
  ONERANK_VIRTUAL_GPU_RECORD,       ///< an event is recorded in a stream
  ONERANK_VIRTUAL_GPU_STREAM_WAIT,  ///< a stream waits for a recorded event
  /// The host waits: for a recorded event, else for a stream, else for the device.
  ONERANK_VIRTUAL_GPU_HOST_WAIT,
  ONERANK_VIRTUAL_GPU_ATTENTION,       ///< a kernel of cuDNN's attention
  ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH,    ///< a CUDA graph is launched; its works follow
  ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED,  ///< these were its works
  ONERANK_VIRTUAL_GPU_CAPTURE,         ///< a stream begins to be captured into a graph
  ONERANK_VIRTUAL_GPU_CAPTURED,        ///< the capture has ended
  /// A work is captured, which has this event's fields but for its kind: it runs with its graph.
  ONERANK_VIRTUAL_GPU_CAPTURED_WORK,
  ONERANK_VIRTUAL_GPU_MARK,         ///< of a graph; see onerank_virtual_gpu_capture_mark()
  ONERANK_VIRTUAL_GPU_MODULE_LOAD,  ///< the driver loads kernels that were compiled at run time
};

enum onerank_virtual_gpu_convolution {
  ONERANK_VIRTUAL_GPU_NO_CONVOLUTION,
  ONERANK_VIRTUAL_GPU_CONVOLUTION_FORWARD,
  ONERANK_VIRTUAL_GPU_CONVOLUTION_BACKWARD_DATA,
  ONERANK_VIRTUAL_GPU_CONVOLUTION_BACKWARD_FILTER,
};

/// A matrix product as cuBLAS was asked for it; see onerank_virtual_gpu_gemm. The types are
/// numbers of cudaDataType.
struct onerank_virtual_gpu_product {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;
  int type;         ///< of the first matrix
  int result_type;  ///< of the result
  int accumulates;  ///< 1: it is added to what the result holds
  int uses_tf32;    ///< 1: fp32 products may be rounded to TF32
  int scale_mode;   ///< of the first matrix, a number of cublasLtMatmulMatrixScale_t; 0: one scale
  /// Bytes, at most 16, of which the rows of all matrices in memory, their distances and addresses
  /// are multiples; 0: it does not matter, since cuDNN pads. Below 16 tensor cores run below their
  /// full rate.
  int alignment;
  /// Bytes that it reads and writes; 0: those of the three matrices. A convolution moves its three
  /// tensors, and reads each input for several rows.
  int64_t bytes;
  /// Of a convolution of x to y; 0 in other products. Channels are those of a group, and the batch
  /// is the groups.
  enum onerank_virtual_gpu_convolution convolution;
  int64_t channels_in;
  int64_t channels_out;
  int64_t window;  ///< elements of a channel's filter
  int64_t inputs;  ///< elements of x
  int64_t outputs;
};

/// Attention of every query to every key, or to those before it. The type is a number of
/// cudaDataType.
struct onerank_virtual_gpu_attention {
  int64_t batch;
  int64_t heads;
  int64_t key_heads;  ///< of keys and values
  int64_t queries;
  int64_t keys;
  int64_t key_width;
  int64_t value_width;
  int type;
  int is_causal;
  int is_backward;
  int has_mask;     ///< a tensor is added to the scores
  int has_dropout;  ///< of the weights
  int64_t bytes;    ///< that it reads and writes
};

/// Fields that an event's kind does not need are 0 or null.
struct onerank_virtual_gpu_event {
  enum onerank_virtual_gpu_event_kind kind;
  int stream;         ///< number of the stream; see onerank_virtual_gpu_stream_number(). -1: none
  uint64_t record;    ///< number of the record, from 1 in the order of recording. 0: none
  int is_timed;       ///< of a record: 1 if the program can ask for its time
  uint64_t captured;  ///< of a work of a graph: its number among all that were captured, from 1
  uint64_t graph;     ///< of a capture and of a launch: the number of the capture, from 1
  uint64_t bytes;     ///< of a copy or fill; of a kernel whose arguments tell what it moves
  int direction;      ///< of a copy: a number of cudaMemcpyKind
  int is_of_others;   ///< 1: a copy to or from memory of other processes' devices
  int is_pageable;    ///< 1: a copy whose memory of the host is not page-locked
  const char* name;   ///< of a kernel, mangled; of a copy into another layout
  uint64_t blocks;    ///< of a kernel
  uint64_t threads;   ///< of a kernel, in all blocks
  /// What a kernel was given: the addresses of device memory (as a parameter, inside a structure,
  /// or inside a tensor map) and the 4-byte parameters. `address_count` is -1 if that is not known:
  /// the code does not say how long the parameters are, or nobody asked.
  const uint64_t* addresses;
  int64_t address_count;
  const int32_t* numbers;
  int64_t number_count;
  const struct onerank_virtual_gpu_product* product;
  const struct onerank_virtual_gpu_attention* attention;
};

/// From now on calls `sink` for each event, on the thread that causes it and in its order. Queries
/// of events and streams are no events: they order nothing. There is one sink at a time.
void onerank_virtual_gpu_set_event_sink(void (*sink)(const struct onerank_virtual_gpu_event* event,
                                                     void* context),
                                        void* context);

/// From now on the time between two records is what `seconds_between` gives on the thread that asks
/// for it. Until then, and where it gives NaN, it is a millisecond.
void onerank_virtual_gpu_set_timer(
    double (*seconds_between)(uint64_t start, uint64_t end, void* context), void* context);

/// Before a kernel of a library is launched, `are_wanted` is asked on that thread whether its event
/// shall have what it was given: it is not 0 if so. The first time that takes milliseconds for each
/// source file of the library. Until this is called, only kernels loaded by the driver tell it,
/// which always do.
void onerank_virtual_gpu_ask_for_arguments(int (*are_wanted)(void* context), void* context);

/// The number by which events call this stream (a cudaStream_t). A default stream has the number of
/// its device; others follow in the order in which they were made, and may be used again.
int onerank_virtual_gpu_stream_number(void* stream);

/// If this stream (a cudaStream_t) is being captured, adds a mark to its graph, which is told at
/// each launch of the graph where it stands among the works, and returns its number, which is
/// counted with theirs; else 0.
uint64_t onerank_virtual_gpu_capture_mark(void* stream);

/// Calls `visit` for every kernel that was launched, in no particular order. `name` is mangled.
void onerank_virtual_gpu_visit_kernels(
    void (*visit)(const char* name, uint64_t launches, void* context), void* context);

/// Calls of cuBLAS and cuBLASLt for matrix products of one shape: `count` calls, each with `batch`
/// products of an m x k matrix and a k x n matrix. The convention is cuBLAS's (column-major).
/// PyTorch asks for the transposed product, so m here is PyTorch's n.
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
