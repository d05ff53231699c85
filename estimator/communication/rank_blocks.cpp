#include "estimator/communication/rank_blocks.h"

#include <algorithm>
#include <numeric>

#include "estimator/base/units.h"

namespace estimator {

int64_t RankBlocks::of(int64_t rank) const {
  if (unequal == 0) return rank / size;
  return ((rank / unit + 1) * unequal - 1) / (ranks / unit);
}

int64_t RankBlocks::begin(int64_t block) const {
  return unequal == 0 ? block * size : block * (ranks / unit) / unequal * unit;
}

int64_t RankBlocks::shortest_piece(int64_t period) const {
  if (unequal == 0) return std::gcd(size, period);
  return period >= ranks ? size : std::gcd(unit, period);
}

bool RankBlocks::cut(int64_t offset, int64_t length, int64_t period) const {
  const int64_t unlike = unequal == 0 ? size / std::gcd(size, period) : divide_up(ranks, period);
  for (int64_t i = 0, begin = offset; i < unlike && begin < ranks; ++i, begin += period) {
    if (!together(begin, begin + length - 1)) return true;
  }
  return false;
}

/// A stretch that no border cuts holds the whole group.
int64_t RankBlocks::fewest_of_kind(const RankSpan& span) const {
  const int64_t piece = shortest_piece(span.distance());
  if (piece == span.distance()) return span.count;
  return std::clamp<int64_t>(piece / span.stride, 1, span.count);
}

int64_t RankBlocks::fewest_from(const RankSpan& span, int64_t first) const {
  const int64_t last = first + (span.count - 1) * span.stride;
  if (together(first, last)) return span.count;
  const int64_t head = divide_up(begin(of(first) + 1) - first, span.stride);
  const int64_t tail = (last - begin(of(last))) / span.stride + 1;
  if (head + tail == span.count) return std::min(head, tail);
  return std::min({head, tail, std::max<int64_t>(1, size / span.stride)});
}

int64_t RankBlocks::ranks_together(const RankGroup& group) const {
  int64_t together = 1;
  for (const RankSpan& span : group.spans) {
    together *= group.place_is_known ? fewest_from(span, group.first) : fewest_of_kind(span);
  }
  return together;
}

}  // namespace estimator
