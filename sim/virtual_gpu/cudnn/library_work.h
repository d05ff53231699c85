#pragma once

#include "sim/virtual_gpu/control.h"
#include "sim/virtual_gpu/cudnn/cudnn_types.h"
#include "sim/virtual_gpu/cudnn/graph_work.h"

/// Puts a library's work on a stream: counts it and tells it to the event sink.
namespace virtual_gpu::cudnn {

/// A kernel that belongs to the library. `name` must live as long as the process.
void run_kernel(const char* name, int64_t threads, cudaStream_t stream);
void run_product(const onerank_virtual_gpu_product& product, cudaStream_t stream);
/// A graph that a plan executes, with tensor cores or without.
void run_graph(const GraphWork& work, bool has_tensor_cores, cudaStream_t stream);

}  // namespace virtual_gpu::cudnn
