#include "sim/virtual_gpu/cudart/address_spans.h"

#include <algorithm>

namespace virtual_gpu {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSpanBytes = 32 * kMiB;
constexpr uint64_t kLeftByContext = 22 * kMiB;

uint64_t whole_spans(uint64_t bytes) { return (bytes + kSpanBytes - 1) / kSpanBytes * kSpanBytes; }

}  // namespace

AddressSpans::AddressSpans(uint64_t end)
    : lowest_(end - kSpanBytes), left_{{end - kLeftByContext, kLeftByContext}} {}

uint64_t AddressSpans::take(uint64_t bytes) {
  auto place = std::find_if(
      left_.begin(), left_.end(), [&](const auto& left) { return left.second >= bytes; });
  if (place == left_.end()) {
    lowest_ -= whole_spans(bytes);
    place = left_.emplace(lowest_, whole_spans(bytes)).first;
  }
  const auto [address, free_bytes] = *place;
  left_.erase(place);
  if (free_bytes > bytes) left_.emplace(address + bytes, free_bytes - bytes);
  return address;
}

}  // namespace virtual_gpu
