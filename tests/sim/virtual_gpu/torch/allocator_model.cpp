#include "allocator_model.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace virtual_gpu {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kLargestSmall = kMiB;
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kLargeSegment = 20 * kMiB;
constexpr int64_t kOwnSegmentFrom = 10 * kMiB;
constexpr int64_t kSegmentRounding = 2 * kMiB;
constexpr int64_t kMaxUnsplitRest = 20 * kMiB;  // max_non_split_rounding_mb

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t segment_size(int64_t size) {
  if (size <= kLargestSmall) return kSmallSegment;
  if (size < kOwnSegmentFrom) return kLargeSegment;
  return round_up(size, kSegmentRounding);
}

bool is_whole(const AllocatorModel::Segment& segment) {
  return segment.size() == 1 && !segment.front().used;
}

}  // namespace

std::optional<AllocatorModel::Handle> AllocatorModel::allocate(int64_t bytes) {
  const int64_t size = std::max(kBlock, round_up(bytes, kBlock));
  const bool is_small = size <= kLargestSmall;
  auto block = find(size, is_small);
  if (!block) block = add_segment(size, is_small);
  if (!block && release_oversized(size)) block = add_segment(size, is_small);
  if (!block) {
    empty_cache();
    block = add_segment(size, is_small);
  }
  if (!block) return std::nullopt;
  const int64_t rest = (*block)->size - size;
  const bool may_split =
      is_small ? rest >= kBlock
               : rest > kLargestSmall && (!settings_.max_split || size < *settings_.max_split);
  if (may_split) block = split(*block, size);
  (*block)->used = true;
  return block;
}

/// Best fit; of equal sizes the lowest address.
std::optional<AllocatorModel::Handle> AllocatorModel::find(int64_t size, bool is_small) {
  std::optional<Handle> best;
  for (Segment& segment : segments_) {
    for (auto block = segment.begin(); block != segment.end(); ++block) {
      if (block->used || block->is_small != is_small || block->size < size) continue;
      if (!best ||
          std::tie(block->size, block->address) < std::tie((*best)->size, (*best)->address)) {
        best = block;
      }
    }
  }
  if (!best || !settings_.max_split) return best;
  const bool is_oversized = (*best)->size >= *settings_.max_split;
  if (size < *settings_.max_split && is_oversized) return std::nullopt;
  if (size >= *settings_.max_split && (*best)->size >= size + kMaxUnsplitRest) return std::nullopt;
  return best;
}

std::optional<AllocatorModel::Handle> AllocatorModel::add_segment(int64_t size, bool is_small) {
  const int64_t bytes = segment_size(size);
  if (reserved_ + bytes > settings_.capacity) return std::nullopt;
  reserved_ += bytes;
  const auto segment = segments_.emplace(segments_.end());
  segment->push_back(
      {.address = static_cast<int64_t>(addresses_.take(static_cast<uint64_t>(bytes))),
       .size = bytes,
       .is_small = is_small,
       .segment = segment});
  return segment->begin();
}

void AllocatorModel::release(std::list<Segment>::iterator segment) {
  reserved_ -= segment->front().size;
  segments_.erase(segment);
}

/// With max_split: the smallest unused segment that is large enough, else large ones from the
/// largest down until they are enough together; whether they are.
bool AllocatorModel::release_oversized(int64_t size) {
  if (!settings_.max_split) return false;
  const int64_t wanted = std::max(size, *settings_.max_split);
  std::vector<std::list<Segment>::iterator> unused;
  for (auto segment = segments_.begin(); segment != segments_.end(); ++segment) {
    if (is_whole(*segment) && !segment->front().is_small &&
        segment->front().size >= *settings_.max_split) {
      unused.push_back(segment);
    }
  }
  std::sort(unused.begin(), unused.end(), [](const auto& left, const auto& right) {
    return std::tie(left->front().size, left->front().address) <
           std::tie(right->front().size, right->front().address);
  });
  for (const auto& segment : unused) {
    if (segment->front().size < wanted) continue;
    release(segment);
    return true;
  }
  int64_t released = 0;
  for (auto segment = unused.rbegin(); segment != unused.rend() && released < wanted; ++segment) {
    released += (*segment)->front().size;
    release(*segment);
  }
  return released >= wanted;
}

AllocatorModel::Handle AllocatorModel::split(Handle block, int64_t size) {
  Segment& segment = *block->segment;
  Block rest = *block;
  rest.address += size;
  rest.size -= size;
  segment.insert(std::next(block), rest);
  block->size = size;
  return block;
}

void AllocatorModel::free(Handle block) {
  Segment& segment = *block->segment;
  block->used = false;
  merge_with_next(block);
  if (block != segment.begin() && !std::prev(block)->used) merge_with_next(std::prev(block));
}

void AllocatorModel::merge_with_next(Handle block) {
  Segment& segment = *block->segment;
  const auto next = std::next(block);
  if (next == segment.end() || next->used) return;
  block->size += next->size;
  segment.erase(next);
}

void AllocatorModel::empty_cache() {
  for (auto segment = segments_.begin(); segment != segments_.end();) {
    const auto current = segment++;
    if (is_whole(*current)) release(current);
  }
}

AllocatorModel::Statistics AllocatorModel::statistics() const {
  Statistics statistics{.reserved_bytes = reserved_,
                        .segments = static_cast<int64_t>(segments_.size())};
  for (const Segment& segment : segments_) {
    for (const Block& block : segment) {
      if (block.used) {
        statistics.allocated_bytes += block.size;
      } else if (segment.size() > 1) {
        statistics.inactive_split_bytes += block.size;
      }
    }
  }
  return statistics;
}

}  // namespace virtual_gpu
