// What a running rank tells the recorder of its profile: which module is running, in which part of
// the iteration, and what lasting memory is for. The rank never reads anything back from it.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/profile/rank_profile.h"

namespace at {
class Tensor;
}

namespace estimator {

inline constexpr int64_t kNoMicroBatch = -1;
inline constexpr int64_t kNoChunk = -1;

/// What a lasting tensor is for. For example "optimizer" owns the moment of the parameter
/// "layers.3.mlp.linear_fc1.weight".
struct LastingMemory {
  MemoryCategory category = MemoryCategory::kWorkspace;
  std::string owner;  ///< a module's path, or a flat buffer's name
  std::string name;   ///< the parameter to which it belongs, or ""
};

/// Calls nest. They come from the forward thread and, with recompute, from the autograd thread.
class Observer {
 public:
  virtual ~Observer() = default;

  /// `name` is one element of a path ("layers.3", "self_attention", "linear_qkv"). The path of a
  /// module consists of the names of all modules that are entered.
  virtual void enter_module(const std::string& name) = 0;
  virtual void leave_module() = 0;

  /// `micro_batch` is the micro-batch to which the work belongs, or kNoMicroBatch; `chunk` is the
  /// stage's model chunk that runs, or kNoChunk.
  virtual void enter_direction(Direction direction, int64_t micro_batch, int64_t chunk) = 0;
  virtual void leave_direction() = 0;

  /// Within a direction: until leave_piece() this thread does the piece number `piece` of the
  /// chunk's forward or backward (schedule/piece_order.h).
  virtual void enter_piece(Direction direction,
                           int64_t micro_batch,
                           int64_t chunk,
                           int64_t piece) = 0;
  virtual void leave_piece() = 0;

  /// What this thread does until leave_stream() is work of the stream that has this number. A new
  /// one has work of its own beside the stream on which the rank computes (kMainStream).
  virtual int64_t new_stream() = 0;
  virtual void enter_stream(int64_t stream) = 0;
  virtual void leave_stream() = 0;
  /// Records a point in the work of the stream where this thread is, and returns its number. The
  /// stream where this thread is waits for such a point.
  virtual int64_t record_point() = 0;
  virtual void wait_for_point(int64_t point) = 0;

  /// A micro-batch's activations are held from the end of its forward to the end of its backward.
  virtual void forward_finished(int64_t micro_batch) = 0;
  virtual void backward_finished(int64_t micro_batch) = 0;

  /// The memory of `tensor` was allocated to last. Must be called while the memory lives.
  virtual void memory_lasts(const at::Tensor& tensor, const LastingMemory& memory) = 0;
};

class ModuleScope {
 public:
  ModuleScope(Observer& observer, const std::string& name) : observer_(observer) {
    observer_.enter_module(name);
  }
  ~ModuleScope() { observer_.leave_module(); }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  Observer& observer_;
};

class StreamScope {
 public:
  StreamScope(Observer& observer, int64_t stream) : observer_(observer) {
    observer_.enter_stream(stream);
  }
  ~StreamScope() { observer_.leave_stream(); }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Observer& observer_;
};

class PieceScope {
 public:
  PieceScope(
      Observer& observer, Direction direction, int64_t micro_batch, int64_t chunk, int64_t piece)
      : observer_(observer) {
    observer_.enter_piece(direction, micro_batch, chunk, piece);
  }
  ~PieceScope() { observer_.leave_piece(); }
  PieceScope(const PieceScope&) = delete;
  PieceScope& operator=(const PieceScope&) = delete;

 private:
  Observer& observer_;
};

class DirectionScope {
 public:
  DirectionScope(Observer& observer,
                 Direction direction,
                 int64_t micro_batch = kNoMicroBatch,
                 int64_t chunk = kNoChunk)
      : observer_(observer) {
    observer_.enter_direction(direction, micro_batch, chunk);
  }
  ~DirectionScope() { observer_.leave_direction(); }
  DirectionScope(const DirectionScope&) = delete;
  DirectionScope& operator=(const DirectionScope&) = delete;

 private:
  Observer& observer_;
};

}  // namespace estimator
