#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace virtual_gpu {

/// Where NVIDIA's driver puts the memory of one device that cudaMalloc asks for, which decides
/// among PyTorch's free blocks of equal size. Seen on an H200 (driver 580.159, ten programs):
/// memory lies in spans of whole 32 MiB, each below the one before. What is left at a span's end is
/// given out to what fits, the lowest first. The first span is the context's, with 22 MiB left.
/// Here, no address is given out twice.
class AddressSpans {
 public:
  /// All addresses are below `end`, a multiple of the spans' size.
  explicit AddressSpans(uint64_t end);

  /// The first address of `bytes` bytes, a multiple of a page.
  uint64_t take(uint64_t bytes);

 private:
  using Left = std::map<uint64_t, std::set<uint64_t>>;  // first addresses, by bytes

  Left::iterator lowest_with(uint64_t bytes);  // the end: no span has them left
  Left::iterator add_span(uint64_t bytes);

  uint64_t lowest_;
  Left left_;  // few sizes, though there may be 100,000 addresses
};

}  // namespace virtual_gpu
