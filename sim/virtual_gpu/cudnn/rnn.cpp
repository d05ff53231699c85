#include "sim/virtual_gpu/cudnn/rnn.h"

#include "sim/virtual_gpu/cudnn/graph_work.h"

namespace virtual_gpu::cudnn {
namespace {

constexpr int kLstm = 2, kGru = 3;  // cudnnRNNMode_t
constexpr int kTwoBiases = 2;       // CUDNN_RNN_DOUBLE_BIAS

int64_t directions(const cudnnRNNStruct& rnn) { return rnn.direction == 0 ? 1 : 2; }

bool is_projected(const cudnnRNNStruct& rnn) {
  return rnn.projection != 0 && rnn.projection != rnn.hidden;
}

/// Width of the state that is passed on.
int64_t state_width(const cudnnRNNStruct& rnn) {
  return is_projected(rnn) ? rnn.projection : rnn.hidden;
}

int64_t input_width(const cudnnRNNStruct& rnn, int64_t pseudo_layer) {
  const bool is_first = pseudo_layer < directions(rnn);
  return is_first ? rnn.input : directions(rnn) * state_width(rnn);
}

int64_t matrix_elements(const cudnnRNNStruct& rnn, int64_t pseudo_layer) {
  const int64_t projection = is_projected(rnn) ? rnn.projection * rnn.hidden : 0;
  return gates(rnn) * rnn.hidden * (input_width(rnn, pseudo_layer) + state_width(rnn)) + projection;
}

int64_t all_matrix_elements(const cudnnRNNStruct& rnn, int64_t first_pseudo_layers) {
  int64_t sum = 0;
  for (int64_t layer = 0; layer < first_pseudo_layers; ++layer) sum += matrix_elements(rnn, layer);
  return sum;
}

/// Rows of `columns` elements, as cuBLAS is asked for x W^T.
onerank_virtual_gpu_product product(
    const cudnnRNNStruct& rnn, int64_t rows, int64_t columns, int64_t inner, bool accumulates) {
  return {.m = columns,
          .n = rows,
          .k = inner,
          .batch = 1,
          .type = cuda_data_type(rnn.type),
          .result_type = cuda_data_type(rnn.type),
          .accumulates = accumulates};
}

}  // namespace

int64_t gates(const cudnnRNNStruct& rnn) {
  return rnn.cell == kLstm ? 4 : rnn.cell == kGru ? 3 : 1;
}

int64_t pseudo_layers(const cudnnRNNStruct& rnn) { return rnn.layers * directions(rnn); }

int64_t weight_elements(const cudnnRNNStruct& rnn) {
  const int64_t biases = rnn.bias == kTwoBiases ? 2 : rnn.bias == 0 ? 0 : 1;
  return all_matrix_elements(rnn, pseudo_layers(rnn)) +
         pseudo_layers(rnn) * biases * gates(rnn) * rnn.hidden;
}

WeightPart weight_matrix(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int64_t number) {
  const int64_t count = gates(rnn);
  const int64_t of_input = rnn.hidden * input_width(rnn, pseudo_layer);
  const int64_t of_state = rnn.hidden * state_width(rnn);
  const int64_t start = all_matrix_elements(rnn, pseudo_layer);
  if (number < count) {
    return {start + number * of_input, rnn.hidden, input_width(rnn, pseudo_layer)};
  }
  const int64_t states = start + count * of_input;
  if (number < 2 * count) {
    return {states + (number - count) * of_state, rnn.hidden, state_width(rnn)};
  }
  if (!is_projected(rnn)) return {};
  return {states + count * of_state, rnn.projection, rnn.hidden};
}

WeightPart weight_bias(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int64_t number) {
  const int64_t count = gates(rnn);
  const int64_t biases = rnn.bias == kTwoBiases ? 2 : rnn.bias == 0 ? 0 : 1;
  if (number >= biases * count) return {};
  const int64_t start = all_matrix_elements(rnn, pseudo_layers(rnn));
  return {start + (pseudo_layer * biases * count + number) * rnn.hidden, rnn.hidden, 1};
}

int64_t reserved_elements(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& data) {
  const int64_t states = rnn.cell == kLstm ? 2 : 1;
  return data.steps * data.batch * pseudo_layers(rnn) * (gates(rnn) + states) * rnn.hidden;
}

int64_t workspace_elements(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& data) {
  return data.steps * data.batch * directions(rnn) * gates(rnn) * rnn.hidden;
}

std::vector<onerank_virtual_gpu_product> forward_products(const cudnnRNNStruct& rnn,
                                                          const cudnnRNNDataStruct& data) {
  const int64_t width = gates(rnn) * rnn.hidden;
  std::vector<onerank_virtual_gpu_product> products;
  for (int64_t layer = 0; layer < pseudo_layers(rnn); ++layer) {
    products.push_back(product(rnn, data.tokens, width, input_width(rnn, layer), false));
    for (int64_t step = 0; step < data.steps; ++step) {
      products.push_back(product(rnn, data.batch, width, state_width(rnn), true));
    }
    if (is_projected(rnn)) {
      products.push_back(product(rnn, data.tokens, rnn.projection, rnn.hidden, false));
    }
  }
  return products;
}

std::vector<onerank_virtual_gpu_product> backward_data_products(const cudnnRNNStruct& rnn,
                                                                const cudnnRNNDataStruct& data) {
  const int64_t width = gates(rnn) * rnn.hidden;
  std::vector<onerank_virtual_gpu_product> products;
  for (int64_t layer = pseudo_layers(rnn); layer-- > 0;) {
    if (is_projected(rnn)) {
      products.push_back(product(rnn, data.tokens, rnn.hidden, rnn.projection, false));
    }
    for (int64_t step = 0; step < data.steps; ++step) {
      products.push_back(product(rnn, data.batch, state_width(rnn), width, true));
    }
    products.push_back(product(rnn, data.tokens, input_width(rnn, layer), width, false));
  }
  return products;
}

std::vector<onerank_virtual_gpu_product> backward_weight_products(const cudnnRNNStruct& rnn,
                                                                  const cudnnRNNDataStruct& data) {
  const int64_t width = gates(rnn) * rnn.hidden;
  std::vector<onerank_virtual_gpu_product> products;
  for (int64_t layer = pseudo_layers(rnn); layer-- > 0;) {
    products.push_back(product(rnn, width, input_width(rnn, layer), data.tokens, true));
    products.push_back(product(rnn, width, state_width(rnn), data.tokens, true));
    if (is_projected(rnn)) {
      products.push_back(product(rnn, rnn.projection, rnn.hidden, data.tokens, true));
    }
  }
  return products;
}

}  // namespace virtual_gpu::cudnn
