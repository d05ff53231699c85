#include "models/shard/side_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace models {
namespace {

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

StreamPoint point_of(const c10::Stream& stream) {
  StreamPoint point(std::in_place, stream.device_type());
  point->record(stream);
  return point;
}

}  // namespace

SideStream::SideStream(const c10::Device& device, bool high_priority) {
  if (!device.is_cuda()) return;
  stream_ =
      c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, high_priority);
}

void SideStream::join() const {
  if (stream_) current_waits_for(point(), stream_->device());
}

void SideStream::wait_for_current() const {
  if (stream_) wait_for(current_point(stream_->device()));
}

void SideStream::wait_for(const StreamPoint& point) const {
  if (stream_ && point) point->block(*stream_);
}

StreamPoint SideStream::point() const { return stream_ ? point_of(*stream_) : std::nullopt; }

StreamPoint current_point(const c10::Device& device) {
  return device.is_cuda() ? point_of(current_stream(device)) : std::nullopt;
}

void current_waits_for(const StreamPoint& point, const c10::Device& device) {
  if (point) point->block(current_stream(device));
}

}  // namespace models
