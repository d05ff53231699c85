// A small model of PyTorch's caching allocator, written from its description alone: one stream, no
// expandable segments. It is what the real one is compared with.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "sim/virtual_gpu/cudart/address_spans.h"

namespace virtual_gpu {

constexpr int64_t kMiB = 1 << 20;

class AllocatorModel {
 public:
  struct Settings {
    int64_t capacity = 0;
    std::optional<int64_t> max_split;
  };
  struct Statistics {
    int64_t allocated_bytes = 0;
    int64_t reserved_bytes = 0;
    int64_t inactive_split_bytes = 0;
    int64_t segments = 0;
    bool operator==(const Statistics&) const = default;
  };
  struct Block;
  using Segment = std::list<Block>;  // neighbours are next to each other
  struct Block {
    int64_t address = 0;
    int64_t size = 0;
    bool used = false;
    bool is_small = false;
    std::list<Segment>::iterator segment;
  };
  using Handle = Segment::iterator;

  explicit AllocatorModel(const Settings& settings) : settings_(settings) {}

  /// Empty when the device is full.
  std::optional<Handle> allocate(int64_t bytes);
  void free(Handle block);
  void empty_cache();
  Statistics statistics() const;

 private:
  std::optional<Handle> find(int64_t size, bool is_small);
  std::optional<Handle> add_segment(int64_t size, bool is_small);
  void release(std::list<Segment>::iterator segment);
  bool release_oversized(int64_t size);
  Handle split(Handle block, int64_t size);
  void merge_with_next(Handle block);

  Settings settings_;
  std::list<Segment> segments_;
  AddressSpans addresses_{uint64_t{1} << 45};  // the driver's order, not the allocator's
  int64_t reserved_ = 0;
};

}  // namespace virtual_gpu
