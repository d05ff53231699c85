// Which rows of a sequence a context rank has. The sequence is cut into 2 x ranks equal chunks.
// Each rank has two of them: number `index` from the front and number `index` from the back, so
// that all ranks have the same work under a causal mask (get_batch_on_this_cp_rank,
// megatron/core/utils.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace models {

struct ContextPlace {
  int64_t ranks = 1;
  int64_t index = 0;
};

/// The two chunks of `place`, one after the other; `whole` itself if there is one rank.
at::Tensor own_chunks(const at::Tensor& whole, int64_t dim, const ContextPlace& place);

/// The numbers of the chunks that rank 0 has, then those of rank 1, and so on: 0, 2n-1, 1, 2n-2,
/// ... for n ranks. Chunks are numbered in the order of the sequence.
std::vector<int64_t> chunks_by_rank(int64_t ranks);

/// A view of the first (0) or second (1) half along `dim`.
at::Tensor half_of(const at::Tensor& tensor, int64_t dim, int64_t which);

}  // namespace models
