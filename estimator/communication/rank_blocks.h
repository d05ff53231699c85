// Ranks in blocks of neighbours: machines, NVLink domains, pods. A border between two blocks may
// cut a group of ranks into pieces.
//
// The groups of one kind follow each other at a distance, the period of their span, and each lies
// in one stretch of as many ranks. Where blocks of equal size cut such stretches, the pieces are
// multiples of gcd(size, period), and a piece of that length occurs.
#pragma once

#include <cstdint>

#include "estimator/plan/parallel_layout.h"

namespace estimator {

struct RankBlocks {
  int64_t size = 1;   ///< ranks of a block; of the smallest where they are unequal
  int64_t ranks = 0;  ///< of the job; 0: not known
  /// Unequal blocks: how many they are, and of what they are made. Block i begins at unit
  /// floor(i * units / unequal).
  int64_t unequal = 0, unit = 1;

  int64_t of(int64_t rank) const;
  /// First rank of a block.
  int64_t begin(int64_t block) const;
  bool together(int64_t rank, int64_t other) const { return of(rank) == of(other); }

  /// Whether a border lies in one of the job's stretches of `length` ranks that begin at offset,
  /// offset + period, offset + 2 period, ...
  bool cut(int64_t offset, int64_t length, int64_t period) const;

  /// Ranks of the group that lie in one block, in the worst case: of the group itself where its
  /// place is known, else of all groups of its kind. The work grows with the number of spans, not
  /// of ranks.
  int64_t ranks_together(const RankGroup& group) const;

 private:
  int64_t shortest_piece(int64_t period) const;
  int64_t fewest_of_kind(const RankSpan& span) const;
  int64_t fewest_from(const RankSpan& span, int64_t first) const;
};

}  // namespace estimator
