#include "sim/virtual_gpu/cudnn/library_work.h"

#include <algorithm>
#include <mutex>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudnn/engine_choice.h"

namespace virtual_gpu::cudnn {
namespace {

constexpr int kDeviceToDevice = 3;  // cudaMemcpyDeviceToDevice
constexpr int kFloat = 0;           // CUDA_R_32F

/// The names that the library's kernels begin with on a GPU.
constexpr const char* kAttentionForward = "cudnn_generated_fort_native_sdpa_flash_fprop";
constexpr const char* kAttentionBackward = "cudnn_generated_fort_native_sdpa_flash_bprop";
constexpr const char* kFused = "cudnn::fused_operations";

Kernel* kernel_named(const char* name) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (kernels().find(name).name != name) kernels().add(name, name, nullptr);
  return &kernels().find(name);
}

/// A block of 128 threads for each 64 queries.
int64_t threads_of(const onerank_virtual_gpu_attention& attention) {
  return (attention.queries + 63) / 64 * 128 * attention.heads * attention.batch;
}

void run_attention(const onerank_virtual_gpu_attention& attention, cudaStream_t stream) {
  const char* name = attention.is_backward ? kAttentionBackward : kAttentionForward;
  run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_ATTENTION,
                      .name = name,
                      .threads = static_cast<uint64_t>(threads_of(attention)),
                      .address_count = -1,
                      .attention = &attention},
            .kernel = kernel_named(name),
            .gemm = {},
            .effect = {}},
           stream);
}

void run_copy(const LayoutCopy& copy, cudaStream_t stream) {
  run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_COPY,
                      .bytes = static_cast<uint64_t>(copy.bytes),
                      .direction = kDeviceToDevice,
                      .name = copy.kernel},
            .gemm = {},
            .effect = {}},
           stream);
}

}  // namespace

void run_kernel(const char* name, int64_t threads, cudaStream_t stream) {
  run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_KERNEL,
                      .name = name,
                      .threads = static_cast<uint64_t>(std::max<int64_t>(1, threads)),
                      .address_count = -1},
            .kernel = kernel_named(name),
            .gemm = {},
            .effect = {}},
           stream);
}

void run_product(const onerank_virtual_gpu_product& product, cudaStream_t stream) {
  run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_PRODUCT, .product = &product},
            .gemm = GemmShape{product.m, product.n, product.k, product.batch},
            .effect = {}},
           stream);
}

void run_graph(const GraphWork& work, bool has_tensor_cores, cudaStream_t stream) {
  if (work.convolution) {
    if (has_tensor_cores) {
      for (const LayoutCopy& copy : layout_copies(*work.convolution)) run_copy(copy, stream);
    }
    onerank_virtual_gpu_product product = product_of(*work.convolution);
    product.uses_tf32 = product.type == kFloat && has_tensor_cores;
    run_product(product, stream);
    return;
  }
  if (work.attention) return run_attention(*work.attention, stream);
  for (const onerank_virtual_gpu_product& product : work.products) run_product(product, stream);
  if (work.products.empty()) run_kernel(kFused, work.largest_tensor, stream);
}

}  // namespace virtual_gpu::cudnn
