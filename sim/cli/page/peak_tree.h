// What fills a peak, as a tree: modules inside modules, and the tensors that each of them made.
// Modules that differ only in an index ("layers.0", "layers.1") are one, and equal tensors too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"

namespace sim {

/// Equal tensors of equal modules.
struct TensorGroup {
  std::string tensor;    ///< parameter's name, if it has one, and shape
  std::string dtype;     ///< "" for memory that is no tensor
  std::string category;  ///< for what it is
  std::string made_by;   ///< operator
  std::string place;     ///< phase, direction; and the functions that called it, if they are known
  int64_t count = 0;
  int64_t bytes = 0;  ///< of all of them
};

struct PeakTree {
  std::string name;                  ///< the last elements of its path, "layers.*"
  int64_t count = 0;                 ///< allocations in it
  int64_t bytes = 0;                 ///< of the modules in it too
  std::string category;              ///< that has most bytes
  std::vector<PeakTree> modules;     ///< most bytes first
  std::vector<TensorGroup> tensors;  ///< of the module itself; most bytes first
};

/// The tree of the allocations; its root has the name "".
PeakTree peak_tree(const std::vector<estimator::PeakAllocation>& allocations);

}  // namespace sim
