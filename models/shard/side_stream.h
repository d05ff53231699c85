// A second stream beside the one on which a rank computes. Memory that is allocated on it comes
// from a separate pool of PyTorch's allocator. On the CPU there is no such stream: all work is done
// in order, but the observer is told of the streams that a GPU would have.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>

#include "models/shard/observer.h"

namespace models {

/// A point in the work of a stream.
struct StreamPoint {
  std::optional<c10::Event> event;  ///< empty on the CPU
  int64_t number = -1;              ///< the observer's
};

/// In the work of the current stream; `observer` may be null.
StreamPoint current_point(const c10::Device& device, Observer* observer = nullptr);

class SideStream {
 public:
  /// `observer` may be null: its order is not told then.
  explicit SideStream(const c10::Device& device,
                      Observer* observer = nullptr,
                      bool high_priority = false);

  /// Work and allocations in its scope are on the stream.
  class Scope {
   public:
    explicit Scope(const SideStream& stream);

   private:
    const c10::OptionalStreamGuard guard_;
    std::optional<estimator::StreamScope> told_;
  };

  const std::optional<c10::Stream>& stream() const { return stream_; }

  /// From now on the current stream waits for all work that the side stream was given.
  void join() const;

  /// From now on the side stream waits for all work that the current stream was given; wait_for()
  /// waits for the work up to the point.
  void wait_for_current() const;
  void wait_for(const StreamPoint& point) const;
  StreamPoint point() const;

  /// In the work of the current stream.
  StreamPoint current_stream_point() const { return current_point(device_, observer_); }

  /// From now on the current stream waits for the work up to the point.
  void current_waits_for(const StreamPoint& point) const;

 private:
  c10::Device device_;
  Observer* observer_;
  int64_t number_ = 0;
  std::optional<c10::Stream> stream_;
};

}  // namespace models
