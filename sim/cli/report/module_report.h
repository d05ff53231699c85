// Memory by module as text: grouped by pattern or one by one, at any depth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"

namespace sim {

struct ModuleTableOptions {
  bool each = false;             ///< every layer by itself, else equal places as `layers.*.mlp`
  std::optional<int64_t> depth;  ///< levels shown, a layer being one; all
};

/// A row of the table: `count` modules whose parameters and activations are added up, and of whose
/// peaks the largest is taken.
struct ModuleGroup {
  estimator::ModuleRecord record;  ///< path: the pattern
  int64_t count = 0;
};

/// In the order of first appearance.
std::vector<ModuleGroup> group_modules(const std::vector<estimator::ModuleRecord>& modules,
                                       const ModuleTableOptions& options);

/// The table in MiB, with what its columns mean.
std::string module_table(const std::vector<estimator::ModuleRecord>& modules,
                         const ModuleTableOptions& options);

/// The elements of a path: "layers.3.mlp" -> "layers.3", "mlp".
std::vector<std::string> path_elements(const std::string& path);

/// The path with each index as `*`, and no deeper than `depth` levels: "layers.*.mlp".
std::string path_pattern(const std::string& path, const ModuleTableOptions& options);

}  // namespace sim
