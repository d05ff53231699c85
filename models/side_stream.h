// A stream beside the one that a rank computes on. What is allocated on it comes from a pool of its
// own in PyTorch's allocator. On the CPU there is none: all is done in order.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <optional>

namespace models {

class SideStream {
 public:
  explicit SideStream(const c10::Device& device);

  /// For a c10::OptionalStreamGuard, in whose scope work and allocations are the stream's.
  const std::optional<c10::Stream>& stream() const { return stream_; }

  /// From here on the current stream waits for what the side stream was given.
  void join() const;

 private:
  std::optional<c10::Stream> stream_;
};

}  // namespace models
