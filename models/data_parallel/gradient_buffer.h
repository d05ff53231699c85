// Flat buffers of gradients (and, with the distributed optimizer, of parameters). They are cut into
// buckets (buckets.h), which are reduced over the data ranks.
//
// With several instances of the distributed optimizer (hybrid sharding) the data ranks of a buffer
// are those of one instance: they share its shards, and the reduced shards are all-reduced between
// the instances.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "models/data_parallel/buckets.h"
#include "models/data_parallel/data_parallel.h"
#include "models/data_parallel/owned_parameters.h"
#include "models/data_parallel/reducer_buckets.h"
#include "models/shard/communicator.h"
#include "models/shard/observer.h"
#include "models/shard/parameters.h"
#include "models/shard/side_stream.h"

namespace models {

/// How long the separate gradients that autograd makes live.
enum class OwnGradients {
  kAdded,              ///< each is added to the flat buffer and freed (Megatron-LM)
  kUntilSummed,        ///< until the end of a micro-batch's backward (nanotron)
  kUntilNextBackward,  ///< until the next backward (DeepSpeed's BF16Optimizer)
  kUntilStep,          ///< they are the sum, without a flat buffer (DeepSpeed's ZeRO stage 1)
  kUntilZeroed,        ///< the same, until the next iteration (PyTorch's zero_grad())
};

struct GradientBufferOptions {
  BufferShape shape;
  c10::ScalarType type = c10::ScalarType::Float;  ///< of the summed gradients
  /// PyTorch's DistributedDataParallel, if there is more than one data rank.
  std::optional<ReducerOptions> reducer;
  bool check_finite = false;  ///< check each bucket's norm before it is reduced
  bool overlap = false;       ///< reduce a bucket as soon as its last gradient is there
  bool overlap_gather =
      false;  ///< put off the gathers of updated parameters until the next forward
  OwnGradients own_gradients = OwnGradients::kAdded;
  /// When sharded: the optimizer's state is one flat tensor for this rank's part of each bucket; if
  /// false, one tensor for each parameter in that part.
  bool flat_pieces = false;
  /// When not sharded: each data rank updates some whole parameters and hands them out.
  WholeOwners whole_owners = WholeOwners::kNone;
  /// Number of ranks over whose tokens gradients are averaged, if these are not the ranks of
  /// `data_group` (0: they are). It differs for experts, which also see tokens of other ranks.
  int64_t replicas = 0;
  /// What step_gradients() gives lasts until the next iteration, also where it is a copy.
  bool keeps_step_gradients = false;
  std::shared_ptr<Communicator> data_group;
  /// The ranks that have the same shards in other instances of the optimizer; may be null.
  std::shared_ptr<Communicator> instances = nullptr;
  Observer& observer;
  /// The flat buffers are made on this stream, and so in a pool of their own; may be null.
  std::shared_ptr<const SideStream> stream = nullptr;
};

class GradientBuffer final : public DataParallel {
 public:
  /// Makes the gradient buffer and sets each parameter's main_gradient. When sharded it also moves
  /// the parameters into one flat buffer of their type: all are quantized (bytes), or none is.
  GradientBuffer(const ParameterList& parameters, GradientBufferOptions options);
  GradientBuffer(const GradientBuffer&) = delete;
  GradientBuffer& operator=(const GradientBuffer&) = delete;

  void begin_iteration() override;
  void start_backward() override;
  void finish_backward() override;
  /// From here on until finish_reduction(), gradients that are added to the chunk count as those
  /// that complete its buckets for the overlapped reduction.
  void start_last_micro_batch(int64_t chunk = 0) override;
  void start_reducing_chunk(int64_t chunk) override;
  void start_reduction() override;
  /// Reduces the buckets that are not reduced yet, and waits for reductions that were started.
  void finish_reduction() override;
  /// Gathers the parameters that the other ranks updated, or receives their broadcasts.
  void gather_parameters() override;
  /// Overlapped gathers: those of the chunk, in the order of its buckets; or that of the bucket
  /// that its forward needs first (zero_grad() of Megatron-LM's DistributedOptimizer before core
  /// 0.9).
  void start_gathers(int64_t chunk, bool all) override;
  /// Waits for the buckets that have the unit's parameters. A gather that was not begun begins
  /// here, and after it that of the bucket that the forward needs next, unless it was
  /// (Megatron-LM's finish_param_sync in core/distributed/param_and_grad_buffer.py).
  void before_unit(int64_t unit) override;
  void finish_gathers() override;

  std::vector<OwnedPiece> owned_pieces() const override;
  std::vector<OptimizerPiece> optimizer_pieces() const override;
  std::vector<at::Tensor> step_gradients(c10::ScalarType type) override;
  bool has_flat_gradients() const override {
    return options_.own_gradients != OwnGradients::kUntilStep &&
           options_.own_gradients != OwnGradients::kUntilZeroed;
  }
  c10::ScalarType gradient_type() const override { return options_.type; }
  int64_t parameter_padding() const override {
    return keeps_parameters() ? padding_elements(places_) : 0;
  }
  int64_t gradient_padding() const override {
    return has_flat_gradients() ? padding_elements(buckets_) : 0;
  }
  std::optional<int64_t> gradient_elements() const override;
  Observer& observer() const override { return options_.observer; }

  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool sharded() const { return options_.shape.sharded; }
  /// This rank's part of a bucket: [begin, end) in the flat buffers.
  std::pair<int64_t, int64_t> shard_range(const Bucket& bucket) const;
  /// The flat gradients; undefined if autograd's own gradients are the sum until the step.
  const at::Tensor& gradients() const { return gradients_; }
  /// Elements [begin, end) of a bucket's gradients, if these are autograd's own: a copy, or a view
  /// of a copy.
  at::Tensor own_gradients(const Bucket& bucket, int64_t begin, int64_t end) const;
  /// The flat parameters; undefined when not sharded.
  const at::Tensor& parameters() const { return parameters_; }

 private:
  void make_flat(const at::TensorOptions& parameter_options);
  void move_in(const ParameterSlot& slot);
  void zero_gradients();
  /// What happens once in an iteration, for all buckets: they are of one chunk.
  DirectionScope once_in(estimator::Direction direction) const;
  void set_buckets(std::vector<Bucket> buckets);
  void contribution_added(Parameter& parameter, std::size_t bucket);
  void reduce(std::size_t index);
  void reduce_the_rest();
  void sum_over_ranks(const Bucket& bucket, const at::Tensor& whole);
  void reduce_over_instances(const Bucket& bucket);
  void start_gather(std::size_t index);
  void finish_gather(std::size_t index);
  /// Of quantized parameters: they, or their transposes, are brought up to date.
  void parameters_arrived(const Bucket& bucket);
  /// Whether the flat parameters have memory of their own.
  bool keeps_parameters() const { return sharded() && !shares_memory_; }
  /// The part of a parameter that this rank updates: [begin, end) in the flat buffers.
  std::pair<int64_t, int64_t> owned_range(const Bucket& bucket, const ParameterSlot& slot) const;
  bool has_flat_pieces() const { return options_.flat_pieces && sharded(); }
  void drop_own_gradients();
  void reduce_own_gradients();
  std::vector<OwnedPiece> whole_pieces() const;
  void finish_reducer();
  void rebuild_buckets();
  void reduce_in_parameter_type();
  void add_own_gradients();
  void call_own_gradients_lasting();
  template <class Visit>
  void for_each_parameter(Visit&& visit) const;
  static int64_t padding_elements(const std::vector<Bucket>& buckets);
  int64_t replicas() const {
    return options_.replicas > 0 ? options_.replicas : options_.shape.data_ranks;
  }
  at::Tensor slice(const at::Tensor& flat, int64_t begin, int64_t end) const;

  GradientBufferOptions options_;
  std::vector<Bucket> buckets_;
  at::Tensor gradients_;
  std::optional<ReducerBuckets> reducer_;
  bool records_arrivals_ = false;
  ParameterList whole_;    ///< with PyTorch's reducer: all, in the order of the model
  ParameterList arrived_;  ///< in the first iteration, in the order of their gradients
  at::Tensor parameters_;
  std::vector<Bucket> places_;  ///< of parameters, which may be packed, in the flat parameters
  /// Parameters lie in the memory of the gradients while they are gathered, and are quantized from
  /// there (--reuse-grad-buf-for-mxfp8-param-ag).
  bool shares_memory_ = false;
  std::vector<at::Tensor> step_gradients_;  ///< if they are kept until the next iteration
  std::unique_ptr<OwnedParameters> owned_parameters_;  ///< null without whole owners
  std::vector<int> missing_contributions_;  ///< for each bucket; 0: not in its last micro-batch
  std::vector<bool> started_;
  std::size_t next_ = 0;  ///< bucket that PyTorch's reducer reduces next
  std::vector<PendingCall> pending_;
  /// Where reductions over several instances wait for each other, if they overlap.
  std::optional<SideStream> reductions_;
  /// For each bucket whose updated parameters are not there: the gather, if it has begun.
  std::map<std::size_t, std::optional<PendingCall>> gathers_;
};

}  // namespace models
