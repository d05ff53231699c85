#include <vector>

#include "sim/virtual_gpu/cudnn/legacy_tensor.h"
#include "sim/virtual_gpu/cudnn/library_work.h"

/// Batch norm. Its sizes are assumed: a workspace of two sums for each channel, and nothing
/// reserved for backward, as cuDNN reserves memory for an activation that it fuses, which PyTorch
/// does not ask for (its own shape function for torch.compile says the same). Parameters after the
/// last one that is needed are left out, which the C calling convention allows.
namespace {

using namespace virtual_gpu::cudnn;
using Tensor = cudnnTensorDescriptor_t;
using Pointer = const void*;

size_t sums_bytes(Tensor x) {
  return 2 * sizeof(float) * static_cast<size_t>(x->shape.dims.size() > 1 ? x->shape.dims[1] : 1);
}

cudnnStatus_t run(const char* name, cudnnHandle_t handle, Tensor x) {
  run_kernel(name, x->shape.elements(), handle->stream);
  return CUDNN_STATUS_SUCCESS;
}

bool is_channels_last(Tensor x) {
  const std::vector<int64_t>& strides = x->shape.strides;
  const std::vector<int64_t>& dims = x->shape.dims;
  return strides.size() > 2 && strides[1] == 1 && dims[1] > 1;
}

constexpr int kFusedNothing = 0;  // CUDNN_BATCHNORM_OPS_BN

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, int, int operations, Tensor x, Tensor, Tensor, Tensor, void*, size_t* bytes) {
  if (operations != kFusedNothing) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = sums_bytes(x);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(cudnnHandle_t,
                                                                int,
                                                                int operations,
                                                                Tensor x,
                                                                Tensor,
                                                                Tensor,
                                                                Tensor,
                                                                Tensor,
                                                                Tensor,
                                                                void*,
                                                                size_t* bytes) {
  if (operations != kFusedNothing) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = sums_bytes(x);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t, int, int operations, void*, Tensor, size_t* bytes) {
  if (operations != kFusedNothing) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, int, int, Pointer, Pointer, Tensor x) {
  const char* const last = "cudnn::batchnorm_fwtr_nhwc_semiPersist";
  return run(is_channels_last(x) ? last : "cudnn::bn_fw_tr_1C11_kernel_NCHW", handle, x);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, int, Pointer, Pointer, Tensor x) {
  return run("cudnn::bn_fw_inf_1C11_kernel_NCHW", handle, x);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, int, int, Pointer, Pointer, Pointer, Pointer, Tensor x) {
  const char* const last = "cudnn::batchnorm_bwtr_nhwc_semiPersist";
  return run(is_channels_last(x) ? last : "cudnn::bn_bw_1C11_kernel_new", handle, x);
}
}
