#include "sim/virtual_gpu/cudnn/cudnn_types.h"

/// cuDNN's handle, and its version, by which programs choose their kernels.
namespace {

constexpr int kMajor = 9;
constexpr int kMinor = 19;
constexpr int kPatch = 0;

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return kMajor * 10000 + kMinor * 100 + kPatch; }

size_t cudnnGetCudartVersion() { return 13000; }

cudnnStatus_t cudnnGetProperty(int property, int* value) {
  constexpr int kVersion[] = {kMajor, kMinor, kPatch};
  if (property < 0 || property > 2) return CUDNN_STATUS_BAD_PARAM;
  *value = kVersion[property];
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "refused by the virtual GPU";
}

void cudnnGetLastErrorString(char* text, size_t length) {
  if (length > 0) text[0] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}
}
