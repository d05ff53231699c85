// ZeRO stages 1 and 2 of DeepSpeed: the 16-bit parameters of each of the optimizer's groups lie in
// one flat tensor, which is cut into equal partitions, one for each data rank. A rank updates its
// partition, with fp32 copies of it.
//
// Gradients are copied into a buffer (the bucket) as autograd makes them. A full bucket is
// all-reduced, and a rank keeps the gradients of the parameters that reach into its partition:
// whole ones, in the type of the parameters. Stage 2 reduces after each micro-batch and adds up
// what it keeps; stage 1 adds up autograd's own gradients and reduces once for each step.
//
// As DeepSpeedZeroOptimizer in deepspeed/runtime/zero/stage_1_and_2.py of v0.18.3, with its
// defaults contiguous_gradients, reduce_scatter and use_multi_rank_bucket_allreduce.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/shard/communicator.h"
#include "models/shard/observer.h"
#include "models/shard/parameters.h"
#include "models/shard/side_stream.h"

namespace models {

struct ZeroPartitionOptions {
  int64_t stage = 2;             ///< 1 or 2
  int64_t bucket_elements = 0;   ///< reduce_bucket_size
  bool overlap = false;          ///< overlap_comm: two buckets, reduced on a side stream
  bool checks_overflow = false;  ///< look for infinite gradients before a step (fp16)
  bool device_computes = true;   ///< whether parameters have values that must be kept
  at::Device device;
  std::shared_ptr<Communicator> data_group;  ///< null if there is one data rank
  Observer& observer;
};

/// Elements in a row whose sum one rank needs.
struct RankSlice {
  int64_t rank = 0;
  int64_t elements = 0;
  bool operator==(const RankSlice&) const = default;
};

/// Elements [begin, end) of a flat tensor.
struct FlatRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// The place of a tensor among flat parameters, of which each rank has `partition` elements.
struct FlatPlace {
  FlatRange range;
  int64_t partition = 0;
};

/// The slices of tensors that lie in a row, given by their places among the parameters. Neighbours
/// for the same rank are one slice. Pure arithmetic.
std::vector<RankSlice> rank_slices(const std::vector<FlatPlace>& places);

class ZeroPartition final : public DataParallel {
 public:
  /// Moves the parameters of each group, all of one 16-bit type, into its flat tensor.
  ZeroPartition(const std::vector<ParameterList>& groups, ZeroPartitionOptions options);
  ZeroPartition(const ZeroPartition&) = delete;
  ZeroPartition& operator=(const ZeroPartition&) = delete;

  void begin_iteration() override { is_last_ = false; }
  void start_last_micro_batch(int64_t /*chunk*/) override { is_last_ = true; }
  void start_backward() override {}
  void finish_backward() override;
  void finish_reduction() override;
  void gather_parameters() override;

  std::vector<OwnedPiece> owned_pieces() const override;
  /// The partition of each group.
  std::vector<OptimizerPiece> optimizer_pieces() const override;
  /// The same, padded; the gradients that they are made of are dropped.
  std::vector<at::Tensor> step_gradients(c10::ScalarType type) override;
  bool has_flat_gradients() const override { return false; }
  c10::ScalarType gradient_type() const override { return options().dtype().toScalarType(); }
  std::optional<int64_t> gradient_elements() const override;
  int64_t parameter_padding() const override;
  int64_t gradient_padding() const override { return 0; }
  Observer& observer() const override { return options_.observer; }

 private:
  struct Group {
    const Parameter* first = nullptr;
    at::Tensor flat;       ///< [padded elements]
    int64_t elements = 0;  ///< without padding
  };
  struct Slot {
    Parameter* parameter = nullptr;
    std::size_t group = 0;
    FlatRange place;
  };
  struct Bucket {
    std::vector<at::Tensor> buffers;  ///< two with overlap
    std::size_t filling = 0;          ///< which of them
    int64_t elements = 0;
    std::vector<const Slot*> slots;
  };

  void add_group(const ParameterList& parameters);
  at::TensorOptions options() const { return groups_.front().flat.options(); }
  void gradient_is_there(const Slot& slot);
  void make_buffers();
  void take(const Slot& slot);
  void switch_buffers();
  void reduce_bucket();
  void average(const at::Tensor& gradients);
  void sum_over_ranks(const at::Tensor& gradients, const std::vector<RankSlice>& slices);
  void keep(const Slot& slot);
  void end_reduction();
  bool is_mine(const Slot& slot) const;
  /// Of the whole gradients that this rank keeps.
  int64_t kept_gradients() const;
  FlatRange mine(const Group& group) const;
  /// The part of the slot's parameter that is in this rank's partition.
  FlatRange own_part(const Slot& slot) const;
  /// For each group those of its parameters, this rank's part of each.
  std::vector<std::vector<at::Tensor>> own_gradients() const;
  at::Tensor flat_gradient(const Group& group, std::vector<at::Tensor> gradients) const;

  ZeroPartitionOptions options_;
  std::vector<Group> groups_;
  std::deque<Slot> slots_;  ///< group by group
  Bucket bucket_;
  SideStream reductions_;
  at::Tensor kept_;  ///< of this micro-batch, whole gradients one after the other
  int64_t kept_elements_ = 0;
  std::vector<at::Tensor> sums_;  ///< one for each of this rank's slots
  at::Tensor norm_;               ///< of the step, which the host reads at its end
  bool is_last_ = false;
};

}  // namespace models
