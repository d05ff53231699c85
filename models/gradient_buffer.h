// Flat buffers of gradients (and, with the distributed optimizer, of parameters), cut into buckets
// that are reduced over the data ranks, as Megatron-LM's DistributedDataParallel lays them out:
// parameters in reverse order; with the distributed optimizer each starts at a multiple of 64
// elements and each bucket ends at a multiple of lcm(data ranks, 128). A bucket is of one chunk.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/communicator.h"
#include "models/data_parallel.h"
#include "models/observer.h"
#include "models/parameters.h"

namespace models {

struct ParameterSlot {
  Parameter* parameter = nullptr;
  int64_t begin = 0;  ///< elements, in the flat buffer
  int64_t end = 0;
};

struct Bucket {
  int64_t begin = 0;  ///< elements, in the flat buffer
  int64_t end = 0;    ///< with padding
  int64_t chunk = 0;  ///< of the stage
  std::vector<ParameterSlot> slots;
};

struct BufferShape {
  bool sharded = false;  ///< the distributed optimizer
  int64_t data_ranks = 1;
  int64_t bucket_elements = 0;   ///< a bucket is closed at this size; 0: one for each chunk
  bool cut_later_chunks = true;  ///< else that size holds in the first chunk alone
  /// The embedding weight that first and last stage share. When sharded it gets a bucket of its own
  /// on both: each data rank must reduce the same part of both copies.
  const Parameter* tied = nullptr;
};

/// Where each parameter lies. Pure arithmetic.
std::vector<Bucket> lay_out_buckets(std::deque<Parameter>& parameters, const BufferShape& shape);

struct GradientBufferOptions {
  BufferShape shape;
  c10::ScalarType type = c10::ScalarType::Float;  ///< of the summed gradients
  /// DistributedDataParallel's reducer copies gradients of the parameters' type into buckets of its
  /// own (gradient_as_bucket_view off) where there is someone to reduce with.
  bool reducer_buckets = false;
  bool overlap = false;  ///< start a bucket's reduction when its last gradient is there
  std::shared_ptr<Communicator> data_group;
  Observer& observer;
};

class GradientBuffer final : public DataParallel {
 public:
  /// Makes the gradient buffer and sets each parameter's main_gradient. When sharded it also
  /// moves the parameters into one flat buffer of their type.
  GradientBuffer(std::deque<Parameter>& parameters, GradientBufferOptions options);
  GradientBuffer(const GradientBuffer&) = delete;
  GradientBuffer& operator=(const GradientBuffer&) = delete;

  void begin_iteration() override;
  /// From here on until finish_reduction() contributions to the chunk count towards the overlapped
  /// reduction.
  void start_last_micro_batch(int64_t chunk = 0) override;
  void finish_backward() override {}
  /// Reduces what is not reduced yet and waits for what is.
  void finish_reduction() override;
  /// Sharded: gathers the parameters that the other ranks updated.
  void gather_parameters() override;

  std::vector<OwnedPiece> owned_pieces() const override;
  c10::ScalarType gradient_type() const override { return options_.type; }
  int64_t parameter_padding() const override { return sharded() ? gradient_padding() : 0; }
  int64_t gradient_padding() const override;
  Observer& observer() const override { return options_.observer; }

  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool sharded() const { return options_.shape.sharded; }
  /// This rank's part of a bucket: [begin, end) in the flat buffers.
  std::pair<int64_t, int64_t> shard_range(const Bucket& bucket) const;
  const at::Tensor& gradients() const { return gradients_; }
  /// The flat parameters; undefined when not sharded.
  const at::Tensor& parameters() const { return parameters_; }

 private:
  void contribution_added(std::size_t bucket);
  void reduce(std::size_t bucket);
  at::Tensor slice(const at::Tensor& flat, int64_t begin, int64_t end) const;

  GradientBufferOptions options_;
  std::vector<Bucket> buckets_;
  at::Tensor gradients_;
  at::Tensor reducer_buckets_;
  at::Tensor parameters_;
  std::vector<int> missing_contributions_;  ///< of each bucket; 0: not in its last micro-batch
  std::vector<bool> started_;
  std::vector<PendingCall> pending_;
};

}  // namespace models
