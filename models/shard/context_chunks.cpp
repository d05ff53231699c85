#include "models/shard/context_chunks.h"

#include <ATen/ops/cat.h>

namespace models {

at::Tensor own_chunks(const at::Tensor& whole, int64_t dim, const ContextPlace& place) {
  if (place.ranks == 1) return whole;
  const int64_t rows = whole.size(dim) / (2 * place.ranks);
  const int64_t from_back = 2 * place.ranks - 1 - place.index;
  return at::cat(
      {whole.narrow(dim, place.index * rows, rows), whole.narrow(dim, from_back * rows, rows)},
      dim);
}

std::vector<int64_t> chunks_by_rank(int64_t ranks) {
  std::vector<int64_t> chunks;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    chunks.push_back(rank);
    chunks.push_back(2 * ranks - 1 - rank);
  }
  return chunks;
}

at::Tensor half_of(const at::Tensor& tensor, int64_t dim, int64_t which) {
  const int64_t rows = tensor.size(dim) / 2;
  return tensor.narrow(dim, which * rows, rows);
}

}  // namespace models
