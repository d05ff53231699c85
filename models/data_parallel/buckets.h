// How parameters lie in a flat buffer, and how it is cut into buckets, each of which is reduced by
// one call. The layouts are those of Megatron-LM's DistributedDataParallel. All parameters of a
// bucket are of one chunk. Pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "models/shard/parameters.h"

namespace models {

struct ParameterSlot {
  Parameter* parameter = nullptr;
  int64_t begin = 0;  ///< elements, in the flat buffer
  int64_t end = 0;
};

struct Bucket {
  int64_t begin = 0;  ///< elements, in the flat buffer
  int64_t end = 0;    ///< with padding
  int64_t chunk = 0;  ///< model chunk of the stage
  std::vector<ParameterSlot> slots;
};

struct BufferShape {
  bool sharded = false;  ///< the distributed optimizer
  int64_t data_ranks = 1;
  int64_t bucket_elements = 0;   ///< size at which a bucket is closed; 0: one bucket for each chunk
  bool cut_later_chunks = true;  ///< false: only the first chunk has several buckets
  /// The embedding weight that the first and the last stage share, or null. When sharded it has a
  /// bucket of its own on both stages, because each data rank must reduce the same part of both
  /// copies.
  const Parameter* tied = nullptr;
  /// When sharded: no parameter is divided; see lay_out_matrices(). Else lay_out_buckets() is used.
  bool whole_matrices = false;
};

/// The buckets, with the place of each parameter. Parameters are in reverse order. When sharded,
/// each starts at a multiple of 64 elements, and each bucket ends at a multiple of lcm(data ranks,
/// 128).
std::vector<Bucket> lay_out_buckets(const ParameterList& parameters, const BufferShape& shape);

/// The places of such parameters in a flat buffer whose elements hold so many of theirs, aligned
/// and padded by the same rules (_compute_nvfp4_packed_layout in
/// megatron/core/distributed/param_and_grad_buffer.py).
std::vector<Bucket> packed_buckets(std::vector<Bucket> buckets,
                                   const BufferShape& shape,
                                   int64_t elements_in_one);

/// Sizes in elements at which PyTorch's reducer closes a bucket: the first one, and all others.
struct ReducerShape {
  int64_t first = 0;
  int64_t others = 0;
};

/// The buckets of PyTorch's DistributedDataParallel over parameters in this order
/// (compute_bucket_assignment_by_size in torch/csrc/distributed/c10d/reducer.cpp). With `reversed`
/// the last bucket becomes the first one, as DistributedDataParallel begins.
std::vector<Bucket> lay_out_reducer_buckets(const ParameterList& parameters,
                                            const ReducerShape& shape,
                                            bool reversed = false);

/// The buckets of matrices that are updated as a whole, each by one data rank: a bucket has a part
/// of equal size for each rank, padded to that of the fullest one, and no matrix is in two parts.
/// Each takes matrices in reverse order, until it has enough and the next one would enlarge it, and
/// deals them out by what orthogonalising them costs, the most expensive first, each to the rank
/// that has least to do (_compute_per_buffer_param_layout of LayerWiseDistributedOptimizer in
/// megatron/core/optimizer/layer_wise_optimizer.py @d98e8a6).
std::vector<Bucket> lay_out_matrices(const ParameterList& parameters, const BufferShape& shape);

}  // namespace models
