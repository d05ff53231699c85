// How fast a GPU reads and writes its memory: published rates (data/memory.json), which are lower
// for small sizes.
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

/// The rate of a GPU; if nothing is published for it, 0.85 of peak is assumed.
MemoryRate memory_rate(const Gpu& gpu);

/// The factor, at most 1, on that rate for a kernel that moves `bytes`. It is interpolated between
/// published points (data/memory.json), so that more bytes never take less time.
double memory_size_share(double bytes);

/// The factor on the rate for PyTorch's fused Adam, which reads and writes seven tensors.
double fused_adam_share();

}  // namespace estimator
