#include "sim/virtual_gpu/cudnn/legacy_tensor.h"
#include "sim/virtual_gpu/cudnn/library_work.h"

/// Dropout's random states, CTC's loss and spatial transformers. Parameters after the last one that
/// is needed are left out, which the C calling convention allows.
namespace {

using namespace virtual_gpu::cudnn;
using Tensor = cudnnTensorDescriptor_t;
using Pointer = const void*;

/// A state of cuRAND's XORWOW generator (48 bytes, curandStateXORWOW_t) for each of 2,048 threads
/// of a multiprocessor; how many cuDNN takes is not public (assumed).
constexpr size_t kStateBytes = 48;
constexpr size_t kThreads = 2048;

/// Forward and backward variables of CTC for every step and every label with the blanks between
/// them (computed for the longest label that fits: one for each step; what cuDNN takes is not
/// public).
size_t ctc_bytes(const TensorShape& probabilities) {
  const auto steps = static_cast<size_t>(probabilities.dims[0]);
  const auto batch = static_cast<size_t>(probabilities.dims[1]);
  return 2 * sizeof(float) * steps * batch * (2 * steps + 1);
}

cudnnStatus_t run(const char* name, cudnnHandle_t handle, int64_t threads) {
  run_kernel(name, threads, handle->stream);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

struct cudnnSpatialTransformerStruct {
  TensorShape output;
};

extern "C" {

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t, size_t* bytes) {
  constexpr int kMultiprocessors = 16;  // cudaDevAttrMultiProcessorCount
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, kMultiprocessors, 0);
  *bytes = kStateBytes * kThreads * static_cast<size_t>(multiprocessors);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(
    void*, cudnnHandle_t handle, float, void*, size_t state_bytes) {
  return run("cudnn::ops::rng_setup", handle, static_cast<int64_t>(state_bytes / kStateBytes));
}

cudnnStatus_t cudnnRestoreDropoutDescriptor() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetCTCLossDescriptorEx() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetCTCLossDescriptor_v9() { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t,
                                           Tensor probabilities,
                                           Tensor,
                                           const int*,
                                           const int*,
                                           const int*,
                                           int,
                                           void*,
                                           size_t* bytes) {
  *bytes = ctc_bytes(probabilities->shape);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(
    cudnnHandle_t, int, void*, Tensor probabilities, Tensor, size_t* bytes) {
  *bytes = ctc_bytes(probabilities->shape);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, Tensor probabilities) {
  return run("cudnn::ctc_loss", handle, probabilities->shape.elements());
}

cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, int, void*, Tensor probabilities) {
  return run("cudnn::ctc_loss", handle, probabilities->shape.elements());
}

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(cudnnSpatialTransformerStruct** made) {
  *made = new cudnnSpatialTransformerStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(cudnnSpatialTransformerStruct* transformer) {
  delete transformer;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerStruct* transformer, int, DataType type, int count, const int* dims) {
  transformer->output = {type, {dims, dims + count}, {}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                 cudnnSpatialTransformerStruct* transformer) {
  return run("cudnn::grid_generator_forward", handle, transformer->output.elements());
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                  cudnnSpatialTransformerStruct* transformer) {
  return run("cudnn::grid_generator_backward", handle, transformer->output.elements());
}

cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                           cudnnSpatialTransformerStruct* transformer) {
  return run("cudnn::sampler_forward", handle, transformer->output.elements());
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                            cudnnSpatialTransformerStruct* transformer) {
  return run("cudnn::sampler_backward", handle, transformer->output.elements());
}
}
