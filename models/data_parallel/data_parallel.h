// How parameters, gradients and optimizer state lie over the data ranks, as the trainer and the
// optimizer see it: whole parameters under a gradient buffer (DDP, the distributed optimizer), or a
// part of each parameter (FSDP2).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/shard/parameters.h"

namespace models {

/// What this rank's optimizer updates of a parameter: the elements [begin, end) of the flattened
/// parameter, maybe none.
struct OwnedPiece {
  const Parameter* parameter = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  at::Tensor weights;    ///< [end - begin], the memory that the model reads
  at::Tensor gradients;  ///< [end - begin], reduced; undefined while there are none
};

struct OptimizerPiece {
  const Parameter* owner = nullptr;  ///< the first one of a piece that spans several
  at::Tensor weights;                ///< flat, the memory that the model reads
};

class DataParallel {
 public:
  virtual ~DataParallel() = default;

  /// Drops the gradients of the iteration before.
  virtual void begin_iteration() = 0;
  /// Backwards of the chunk from here on are of its last micro-batch.
  virtual void start_last_micro_batch(int64_t chunk) = 0;
  /// Around the backward of each micro-batch.
  virtual void start_backward() = 0;
  virtual void finish_backward() = 0;
  /// After all of them: every gradient is reduced when it returns.
  virtual void finish_reduction() = 0;
  /// After the optimizer's step: gathers what the other ranks updated, where parameters are whole.
  virtual void gather_parameters() = 0;

  /// Of every parameter, in a fixed order.
  virtual std::vector<OwnedPiece> owned_pieces() const = 0;
  /// What one tensor of each kind of optimizer state is for: the owned pieces that are not empty,
  /// where nothing else is said.
  virtual std::vector<OptimizerPiece> optimizer_pieces() const;
  /// Their reduced gradients, in a type. They may be taken only once.
  virtual std::vector<at::Tensor> step_gradients(c10::ScalarType type);
  /// Gradients have memory that lasts; else each backward makes its own.
  virtual bool has_flat_gradients() const = 0;
  /// Type of the reduced gradients.
  virtual c10::ScalarType gradient_type() const = 0;
  /// Elements of parameters and of gradients that only fill up.
  virtual int64_t parameter_padding() const = 0;
  virtual int64_t gradient_padding() const = 0;
  virtual Observer& observer() const = 0;
};

}  // namespace models
