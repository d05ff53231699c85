#include <numeric>

#include "sim/virtual_gpu/cudnn/legacy_tensor.h"
#include "sim/virtual_gpu/cudnn/library_work.h"
#include "sim/virtual_gpu/cudnn/rnn.h"

/// Recurrent layers: the matrix products, and a kernel for the cells of each layer. Parameters
/// after the last one that is needed are left out, which the C calling convention allows.
namespace {

using namespace virtual_gpu::cudnn;
using Pointer = const void*;
using Rnn = cudnnRNNStruct*;
using Data = cudnnRNNDataStruct*;

constexpr int kTraining = 1;  // CUDNN_FWD_MODE_TRAINING

cudnnStatus_t run(const std::vector<onerank_virtual_gpu_product>& products,
                  const char* cells,
                  cudnnHandle_t handle,
                  const cudnnRNNStruct& rnn,
                  const cudnnRNNDataStruct& data) {
  for (const onerank_virtual_gpu_product& product : products) {
    run_product(product, handle->stream);
  }
  for (int64_t layer = 0; cells != nullptr && layer < pseudo_layers(rnn); ++layer) {
    run_kernel(cells, data.tokens * rnn.hidden, handle->stream);
  }
  return CUDNN_STATUS_SUCCESS;
}

void describe(const WeightPart& part, DataType type, cudnnTensorDescriptor_t tensor) {
  tensor->shape = {type, {1, part.rows, part.columns}, {part.rows * part.columns, part.columns, 1}};
}

void locate(const cudnnRNNStruct& rnn,
            const WeightPart& part,
            Pointer weights,
            cudnnTensorDescriptor_t tensor,
            void** address) {
  if (tensor != nullptr) describe(part, rnn.type, tensor);
  if (address == nullptr) return;
  const auto start = reinterpret_cast<uintptr_t>(weights);
  const auto offset = static_cast<uintptr_t>(part.offset * data_type_bytes(rnn.type));
  *address = part.rows == 0 ? nullptr : reinterpret_cast<void*>(start + offset);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateRNNDescriptor(Rnn* rnn) {
  *rnn = new cudnnRNNStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyRNNDescriptor(Rnn rnn) {
  delete rnn;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(Rnn rnn,
                                       int /*algorithm*/,
                                       int cell,
                                       int bias,
                                       int direction,
                                       int /*input mode*/,
                                       DataType type,
                                       DataType /*of the computation*/,
                                       int /*math type*/,
                                       int32_t input,
                                       int32_t hidden,
                                       int32_t projection,
                                       int32_t layers,
                                       void* /*dropout*/,
                                       uint32_t /*flags*/) {
  *rnn = {cell, bias, direction, type, input, hidden, projection, layers};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(Data* data) {
  *data = new cudnnRNNDataStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(Data data) {
  delete data;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(Data data,
                                        DataType type,
                                        int /*layout*/,
                                        int steps,
                                        int batch,
                                        int width,
                                        const int* lengths,
                                        void* /*padding*/) {
  *data = {type, steps, batch, width, std::accumulate(lengths, lengths + batch, int64_t{0})};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, Rnn rnn, size_t* bytes) {
  *bytes = static_cast<size_t>(weight_elements(*rnn) * data_type_bytes(rnn->type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(
    cudnnHandle_t, Rnn rnn, int mode, Data data, size_t* workspace, size_t* reserved) {
  const int64_t element = data_type_bytes(rnn->type);
  if (workspace != nullptr) {
    *workspace = static_cast<size_t>(workspace_elements(*rnn, *data) * element);
  }
  if (reserved != nullptr) {
    const int64_t kept = mode == kTraining ? reserved_elements(*rnn, *data) : 0;
    *reserved = static_cast<size_t>(kept * element);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t,
                                      Rnn rnn,
                                      int32_t pseudo_layer,
                                      size_t,
                                      Pointer weights,
                                      int32_t number,
                                      cudnnTensorDescriptor_t matrix,
                                      void** matrix_address,
                                      cudnnTensorDescriptor_t bias,
                                      void** bias_address) {
  locate(*rnn, weight_matrix(*rnn, pseudo_layer, number), weights, matrix, matrix_address);
  locate(*rnn, weight_bias(*rnn, pseudo_layer, number), weights, bias, bias_address);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, Rnn rnn, int, const int32_t*, Data x) {
  return run(forward_products(*rnn, *x), "cudnn::rnn::elemWiseRNNcell", handle, *rnn, *x);
}

cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, Rnn rnn, const int32_t*, Data, Pointer, Pointer, Data x) {
  return run(
      backward_data_products(*rnn, *x), "cudnn::rnn::LSTM_elementWise_bp1", handle, *rnn, *x);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, Rnn rnn, int, const int32_t*, Data x) {
  return run(backward_weight_products(*rnn, *x), nullptr, handle, *rnn, *x);
}
}
