// Which rows of a sequence a context rank has. Of 2 x ranks equal chunks each rank has the one that
// lies `index` from the front and the one that lies `index` from the back, so that under a causal
// mask all have the same work (get_batch_on_this_cp_rank, megatron/core/utils.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace models {

struct ContextPlace {
  int64_t ranks = 1;
  int64_t index = 0;
};

/// The chunks of `place`, one after the other; `whole` itself where one rank has it all.
at::Tensor own_chunks(const at::Tensor& whole, int64_t dim, const ContextPlace& place);

/// The chunks of rank after rank, as numbers of chunks in their order in the sequence:
/// 0, 2n-1, 1, 2n-2, ... for n ranks.
std::vector<int64_t> chunks_by_rank(int64_t ranks);

/// Half 0 or 1 along `dim`, a view.
at::Tensor half_of(const at::Tensor& tensor, int64_t dim, int64_t which);

}  // namespace models
