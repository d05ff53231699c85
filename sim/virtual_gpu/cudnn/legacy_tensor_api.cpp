#include "sim/virtual_gpu/cudnn/legacy_tensor.h"

namespace {

using virtual_gpu::cudnn::DataType;

void write(const std::vector<int64_t>& values, int requested, int* to) {
  for (std::size_t i = 0; i < values.size() && static_cast<int>(i) < requested; ++i) {
    to[i] = static_cast<int>(values[i]);
  }
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  *tensor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  delete tensor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(
    cudnnTensorDescriptor_t tensor, DataType type, int count, const int* dims, const int* strides) {
  tensor->shape = {type, {dims, dims + count}, {strides, strides + count}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensor,
                                         int requested,
                                         DataType* type,
                                         int* count,
                                         int* dims,
                                         int* strides) {
  *type = tensor->shape.type;
  *count = static_cast<int>(tensor->shape.dims.size());
  write(tensor->shape.dims, requested, dims);
  write(tensor->shape.strides, requested, strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnTensorDescriptor_t* filter) {
  return cudnnCreateTensorDescriptor(filter);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnTensorDescriptor_t filter) {
  return cudnnDestroyTensorDescriptor(filter);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(
    cudnnTensorDescriptor_t filter, DataType type, int format, int count, const int* dims) {
  filter->shape = {type, {dims, dims + count}, {}};
  filter->format = format;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnTensorDescriptor_t filter,
                                         int requested,
                                         DataType* type,
                                         int* format,
                                         int* count,
                                         int* dims) {
  *type = filter->shape.type;
  *format = filter->format;
  *count = static_cast<int>(filter->shape.dims.size());
  write(filter->shape.dims, requested, dims);
  return CUDNN_STATUS_SUCCESS;
}
}
