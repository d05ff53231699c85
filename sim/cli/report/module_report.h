// The memory of each module as text: grouped by pattern or one by one, to any depth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/cli/report/table.h"

namespace sim {

struct ModuleTableOptions {
  bool each = false;             ///< each layer separately, else grouped as `layers.*.mlp`
  std::optional<int64_t> depth;  ///< levels shown, of which a layer is one; empty: all
};

/// As --drill-down and --depth say it; an empty depth is all. Throws UserError.
ModuleTableOptions module_table_options(bool drill_down, const std::string& depth);

/// A row of the table, for `count` modules: the sum of their parameters and activations, and the
/// largest of their peaks.
struct ModuleGroup {
  estimator::ModuleRecord record;  ///< path: the pattern
  int64_t count = 0;
};

/// The rows, in the order of first appearance.
std::vector<ModuleGroup> group_modules(const std::vector<estimator::ModuleRecord>& modules,
                                       const ModuleTableOptions& options);

/// The table in MiB, and what its columns mean.
TitledTable module_table(const std::vector<estimator::ModuleRecord>& modules,
                         const ModuleTableOptions& options);

/// The same as text, without an indent.
std::string module_text(const std::vector<estimator::ModuleRecord>& modules,
                        const ModuleTableOptions& options);

/// The path with `*` in place of each index, cut off after `depth` levels: "layers.*.mlp".
std::string path_pattern(const std::string& path, const ModuleTableOptions& options);

}  // namespace sim
