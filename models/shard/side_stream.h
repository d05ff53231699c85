// A second stream beside the one on which a rank computes. Memory that is allocated on it comes
// from a separate pool of PyTorch's allocator. On the CPU there is no such stream: all work is done
// in order.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

namespace models {

/// A point in the work of a stream; empty on the CPU.
using StreamPoint = std::optional<c10::Event>;

class SideStream {
 public:
  explicit SideStream(const c10::Device& device, bool high_priority = false);

  /// For a c10::OptionalStreamGuard: work and allocations in its scope are on this stream.
  const std::optional<c10::Stream>& stream() const { return stream_; }

  /// From now on the current stream waits for all work that the side stream was given.
  void join() const;

  /// From now on the side stream waits for all work that the current stream was given; wait_for()
  /// waits for the work up to the point.
  void wait_for_current() const;
  void wait_for(const StreamPoint& point) const;
  StreamPoint point() const;

 private:
  std::optional<c10::Stream> stream_;
};

StreamPoint current_point(const c10::Device& device);
/// From now on the current stream waits for the work up to the point.
void current_waits_for(const StreamPoint& point, const c10::Device& device);

}  // namespace models
