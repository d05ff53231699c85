// A stream beside the one that a rank computes on. What is allocated on it comes from a pool of its
// own in PyTorch's allocator. On the CPU there is none: all is done in order.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

namespace models {

/// How far a stream's work had come; none on the CPU.
using StreamPoint = std::optional<c10::Event>;

class SideStream {
 public:
  explicit SideStream(const c10::Device& device, bool high_priority = false);

  /// For a c10::OptionalStreamGuard, in whose scope work and allocations are the stream's.
  const std::optional<c10::Stream>& stream() const { return stream_; }

  /// From here on the current stream waits for what the side stream was given.
  void join() const;

  /// From here on the side stream waits for what the current stream was given, or up to the point.
  void wait_for_current() const;
  void wait_for(const StreamPoint& point) const;
  StreamPoint point() const;

 private:
  std::optional<c10::Stream> stream_;
};

StreamPoint current_point(const c10::Device& device);
/// From here on the current stream waits for what was given up to the point.
void current_waits_for(const StreamPoint& point, const c10::Device& device);

}  // namespace models
