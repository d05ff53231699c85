#include "sim/virtual_gpu/cudart/address_spans.h"

namespace virtual_gpu {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSpanBytes = 32 * kMiB;
constexpr uint64_t kLeftByContext = 22 * kMiB;

uint64_t whole_spans(uint64_t bytes) { return (bytes + kSpanBytes - 1) / kSpanBytes * kSpanBytes; }

}  // namespace

AddressSpans::AddressSpans(uint64_t end)
    : lowest_(end - kSpanBytes), left_{{kLeftByContext, {end - kLeftByContext}}} {}

AddressSpans::Left::iterator AddressSpans::lowest_with(uint64_t bytes) {
  auto best = left_.end();
  for (auto at = left_.lower_bound(bytes); at != left_.end(); ++at) {
    if (best == left_.end() || *at->second.begin() < *best->second.begin()) best = at;
  }
  return best;
}

AddressSpans::Left::iterator AddressSpans::add_span(uint64_t bytes) {
  lowest_ -= whole_spans(bytes);
  const auto place = left_.try_emplace(whole_spans(bytes)).first;
  place->second.insert(lowest_);
  return place;
}

uint64_t AddressSpans::take(uint64_t bytes) {
  auto place = lowest_with(bytes);
  if (place == left_.end()) place = add_span(bytes);
  const uint64_t free_bytes = place->first;
  const uint64_t address = *place->second.begin();
  place->second.erase(place->second.begin());
  if (place->second.empty()) left_.erase(place);
  if (free_bytes > bytes) left_[free_bytes - bytes].insert(address + bytes);
  return address;
}

}  // namespace virtual_gpu
