#include <stdexcept>

#include "sim/tracking/allocator_trace.h"

namespace sim {

void trace_allocator(AllocatorSink) {
  throw std::logic_error("a torch without CUDA has no caching allocator");
}

AllocatorState allocator_state() {
  throw std::logic_error("a torch without CUDA has no caching allocator");
}

}  // namespace sim
