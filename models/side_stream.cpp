#include "models/side_stream.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace models {

SideStream::SideStream(const c10::Device& device) {
  if (!device.is_cuda()) return;
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

void SideStream::join() const {
  if (!stream_) return;
  c10::Event done(stream_->device_type());
  done.record(*stream_);
  done.block(c10::impl::VirtualGuardImpl(stream_->device_type()).getStream(stream_->device()));
}

}  // namespace models
