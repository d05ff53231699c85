#include "models/shard/side_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace models {
namespace {

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

StreamPoint current_point(const c10::Device& device, Observer* observer) {
  StreamPoint point;
  if (observer != nullptr) point.number = observer->record_point();
  if (device.is_cuda()) {
    point.event.emplace(device.type());
    point.event->record(current_stream(device));
  }
  return point;
}

SideStream::SideStream(const c10::Device& device, Observer* observer, bool high_priority)
    : device_(device), observer_(observer) {
  if (observer_ != nullptr) number_ = observer_->new_stream();
  if (!device.is_cuda()) return;
  stream_ =
      c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, high_priority);
}

SideStream::Scope::Scope(const SideStream& stream) : guard_(stream.stream_) {
  if (stream.observer_ != nullptr) told_.emplace(*stream.observer_, stream.number_);
}

void SideStream::join() const { current_waits_for(point()); }

void SideStream::wait_for_current() const { wait_for(current_point(device_, observer_)); }

void SideStream::wait_for(const StreamPoint& point) const {
  const Scope scope(*this);
  current_waits_for(point);
}

StreamPoint SideStream::point() const {
  const Scope scope(*this);
  return current_point(device_, observer_);
}

void SideStream::current_waits_for(const StreamPoint& point) const {
  if (observer_ != nullptr) observer_->wait_for_point(point.number);
  if (!point.event) return;
  point.event->block(current_stream(device_));
}

}  // namespace models
