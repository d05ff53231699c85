#include "models/data_parallel/data_parallel.h"

namespace models {

std::vector<OptimizerPiece> DataParallel::optimizer_pieces() const {
  std::vector<OptimizerPiece> pieces;
  for (const OwnedPiece& owned : owned_pieces()) {
    if (owned.begin < owned.end) pieces.push_back({owned.parameter, owned.weights});
  }
  return pieces;
}

std::vector<at::Tensor> DataParallel::step_gradients(c10::ScalarType type) {
  std::vector<at::Tensor> gradients;
  for (const OwnedPiece& owned : owned_pieces()) {
    if (owned.begin < owned.end) gradients.push_back(owned.gradients.to(type));
  }
  return gradients;
}

int64_t elements_of_memory(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.storage().nbytes()) / tensor.element_size();
}

at::Tensor in_own_memory(const at::Tensor& tensor) {
  return elements_of_memory(tensor) > tensor.numel() ? tensor.clone() : tensor;
}

}  // namespace models
