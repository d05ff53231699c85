// How parameters, gradients and optimizer state are divided among the data ranks, as the trainer
// and the optimizer see it: each rank has whole parameters and a gradient buffer (DDP, the
// distributed optimizer), or a part of each parameter (FSDP2).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/shard/parameters.h"

namespace models {

/// The part of a parameter that this rank's optimizer updates: the elements [begin, end) of the
/// flattened parameter, possibly none.
struct OwnedPiece {
  const Parameter* parameter = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  at::Tensor weights;    ///< [end - begin], in the memory that the model reads
  at::Tensor gradients;  ///< [end - begin], reduced; undefined if there are none yet
};

struct OptimizerPiece {
  const Parameter* owner = nullptr;  ///< its parameter; the first one if it spans several
  at::Tensor weights;                ///< flat, in the memory that the model reads
};

class DataParallel {
 public:
  virtual ~DataParallel() = default;

  /// Drops the gradients of the iteration before.
  virtual void begin_iteration() = 0;
  /// From now on, backwards of the chunk are those of its last micro-batch.
  virtual void start_last_micro_batch(int64_t chunk) = 0;
  /// Called before the forward of each micro-batch.
  virtual void start_forward() {}
  /// Called before and after the backward of each micro-batch.
  virtual void start_backward() = 0;
  virtual void finish_backward() = 0;
  /// Called after the last backward of a chunk, where stages are torch.distributed.pipelining's.
  virtual void finish_chunk(int64_t /*chunk*/) {}
  /// Such a stage with several chunks begins to gather all parameters of a chunk before it needs
  /// them, and frees them when other chunks come first.
  virtual void start_gathering_chunk(int64_t /*chunk*/) {}
  virtual void free_chunk(int64_t /*chunk*/) {}
  /// Begins reductions that overlap with work and have not begun: of a chunk after its last
  /// backward, or of all chunks after all backwards.
  virtual void start_reducing_chunk(int64_t /*chunk*/) {}
  virtual void start_reduction() {}
  /// Called after all backwards. When it returns, every gradient is reduced.
  virtual void finish_reduction() = 0;
  /// Called after the optimizer's step. If parameters are whole, it gathers what the other ranks
  /// updated, or puts that off until the next forward.
  virtual void gather_parameters() = 0;
  /// Whether that comes after the update of experts and after that of all else.
  virtual bool gathers_after_each_optimizer() const { return false; }
  /// Begins the gathers of a chunk that were put off: all of them, or the first.
  virtual void start_gathers(int64_t /*chunk*/, bool /*all*/) {}
  /// Called before each forward of a unit: its parameters are gathered when it returns.
  virtual void before_unit(int64_t /*unit*/) {}
  /// Does now what was put off.
  virtual void finish_gathers() {}

  /// The piece of every parameter, in a fixed order.
  virtual std::vector<OwnedPiece> owned_pieces() const = 0;
  /// The pieces for each of which the optimizer keeps one tensor of every kind of state. By default
  /// these are the owned pieces that are not empty.
  virtual std::vector<OptimizerPiece> optimizer_pieces() const;
  /// The reduced gradients of these pieces, in the given type. They may be taken only once.
  virtual std::vector<at::Tensor> step_gradients(c10::ScalarType type);
  /// Whether gradients have lasting memory; if not, each backward allocates its own.
  virtual bool has_flat_gradients() const = 0;
  /// Type of the reduced gradients.
  virtual c10::ScalarType gradient_type() const = 0;
  /// Elements of the gradients that this rank keeps for the step; empty: those of all parameters.
  virtual std::optional<int64_t> gradient_elements() const { return std::nullopt; }
  /// Elements of padding in the parameters and in the gradients.
  virtual int64_t parameter_padding() const = 0;
  virtual int64_t gradient_padding() const = 0;
  virtual Observer& observer() const = 0;
};

/// Elements of all the memory in which the tensor lies: more than its own if it is a view of a
/// part, as an embedding's gradient may be (trait whole_embedding_gradient).
int64_t elements_of_memory(const at::Tensor& tensor);
/// The tensor, or a copy of it if it is a view of a part of its memory.
at::Tensor in_own_memory(const at::Tensor& tensor);

}  // namespace models
