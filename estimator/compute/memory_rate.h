// How fast a GPU streams its memory: published rates (data/memory.json) and how they fall with
// size.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/hardware/hardware.h"

namespace estimator {

struct MemoryRate {
  double share = 1;  ///< of the peak bandwidth, for large streams
  Source source = Source::kAssumed;
  std::string note;
};

/// Assumed where nothing is published: 0.85 of peak.
MemoryRate memory_rate(const Gpu& gpu);

/// What the size leaves of it: a published ladder (data/memory.json) whose steps are joined by
/// lines, so that more bytes never take less time.
double memory_size_share(double bytes);

}  // namespace estimator
