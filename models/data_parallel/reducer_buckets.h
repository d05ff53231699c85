// The buckets of PyTorch's DistributedDataParallel, whose reducer copies gradients into them, sums
// them over the data ranks and copies them back (gradient_as_bucket_view is off).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/data_parallel/buckets.h"
#include "models/shard/communicator.h"
#include "models/shard/observer.h"

namespace models {

struct ReducerOptions {
  /// If its sizes are 0, buckets are those of a gradient buffer, cut from one tensor; else each has
  /// memory of its own, as PyTorch's.
  ReducerShape shape;
  /// It looks for unused parameters: which ones were used is summed over the ranks, too, and its
  /// first buckets last. Else the first iteration has one bucket, and the others have buckets in
  /// the order in which gradients came.
  bool finds_unused = false;

  bool is_torchs() const { return shape.others > 0; }
  bool rebuilds() const { return is_torchs() && !finds_unused; }
};

/// The buckets with which PyTorch's reducer begins.
std::vector<Bucket> first_reducer_buckets(const ParameterList& parameters,
                                          const ReducerOptions& options);

/// Sends the values of rank 0 to all ranks, as DistributedDataParallel does when it is made: all
/// parameters of a type in flat tensors of 250 MiB, of which two are under way at once
/// (_sync_module_states in torch/distributed/utils.py, broadcast_coalesced in
/// torch/csrc/distributed/c10d/comm.cpp).
void send_first_values(const ParameterList& parameters, Communicator& group);

class ReducerBuckets {
 public:
  /// In the parameters' type; the buckets have some.
  ReducerBuckets(const std::vector<Bucket>& buckets,
                 const ReducerOptions& options,
                 Communicator& group,
                 Observer& observer);

  /// Frees the buckets, and makes others.
  void make(const std::vector<Bucket>& buckets);
  /// Copies the bucket's gradients, divided by the number of `replicas`, and begins their sum
  /// (mark_variable_ready_dense in torch/csrc/distributed/c10d/reducer.cpp).
  PendingCall reduce(const std::vector<Bucket>& buckets, std::size_t index, int64_t replicas);
  /// After the last bucket (all_reduce_local_used_map). Over if it looks for none.
  PendingCall reduce_used_map();
  /// After all sums.
  void copy_back(const std::vector<Bucket>& buckets) const;

 private:
  at::Tensor place_of(const Bucket& bucket, std::size_t index, const ParameterSlot& slot) const;

  ReducerOptions options_;
  Communicator& group_;
  Observer& observer_;
  std::vector<at::Tensor> tensors_;  ///< flat, one for each bucket
  at::Tensor used_;                  ///< int32, one for each parameter
};

}  // namespace models
