#pragma once

#include <cstdint>
#include <vector>

#include "sim/virtual_gpu/control.h"
#include "sim/virtual_gpu/cudnn/descriptor.h"

struct cudnnRNNStruct {
  int cell = 0;       // cudnnRNNMode_t
  int bias = 0;       // cudnnRNNBiasMode_t
  int direction = 0;  // cudnnDirectionMode_t
  virtual_gpu::cudnn::DataType type = virtual_gpu::cudnn::DataType::kFloat;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t projection = 0;  // equal to `hidden`: none
  int64_t layers = 0;
};

struct cudnnRNNDataStruct {
  virtual_gpu::cudnn::DataType type = virtual_gpu::cudnn::DataType::kFloat;
  int64_t steps = 0;  // of the longest sequence
  int64_t batch = 0;
  int64_t width = 0;
  int64_t tokens = 0;  // of all sequences
};

namespace virtual_gpu::cudnn {

/// A part of the weights, in elements from their start. A pseudo layer is a layer in a direction.
struct WeightPart {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

int64_t gates(const cudnnRNNStruct& rnn);
int64_t pseudo_layers(const cudnnRNNStruct& rnn);

/// Elements of all weights: first the matrices of all pseudo layers (of the input, of the state, of
/// the projection), then their biases.
int64_t weight_elements(const cudnnRNNStruct& rnn);
/// Matrices are numbered by gate, those of the input first, then those of the state. The one after
/// them is the projection's. Nothing of no rows if there is no such part.
WeightPart weight_matrix(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int64_t number);
WeightPart weight_bias(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int64_t number);

/// What backward needs beside inputs, outputs and weights, in elements for each token: the gates
/// and the states of every pseudo layer. How cuDNN keeps it is not public.
int64_t reserved_elements(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& data);
/// The gates of a pseudo layer, before the state's part is added. Assumed, as above.
int64_t workspace_elements(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& data);

/// The matrix products of a pass. Each layer multiplies all inputs at once, and the state step by
/// step.
std::vector<onerank_virtual_gpu_product> forward_products(const cudnnRNNStruct& rnn,
                                                          const cudnnRNNDataStruct& data);
std::vector<onerank_virtual_gpu_product> backward_data_products(const cudnnRNNStruct& rnn,
                                                                const cudnnRNNDataStruct& data);
std::vector<onerank_virtual_gpu_product> backward_weight_products(const cudnnRNNStruct& rnn,
                                                                  const cudnnRNNDataStruct& data);

}  // namespace virtual_gpu::cudnn
