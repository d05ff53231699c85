// The plan that a foreign file means, and what became of each of its keys.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/json.h"
#include "estimator/base/json_value.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/import/key_table.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// A technique that the file uses, which is not modelled.
struct UsedTechnique {
  const Technique* technique = nullptr;
  std::vector<SourceEntry> uses;
};

/// A key of the plan whose value the file leaves to somebody else, such as --micro-batch-size $MBS.
struct UnsetKey {
  SourceEntry entry;
  std::string path;
};

struct ImportedPlan {
  std::string origin;           ///< the file
  std::string program;          ///< "Megatron-LM"
  std::string model_name = {};  ///< of a model that the file names and no preset has
  estimator::JsonValue tree;
  std::vector<SourceEntry> modelled;
  std::vector<SourceEntry> without_effect;
  std::vector<SourceEntry> unknown;  ///< keys that no table has
  std::vector<SourceEntry> open;     ///< words of a command that may hold any arguments
  std::vector<UnsetKey> unset;
  std::vector<UsedTechnique> techniques;
  std::vector<std::string> notes;
  /// Flags that divide layers among stages, which depend on other keys (PipelineLayers).
  std::vector<std::pair<std::string, std::string>> stage_flags;
  /// Writes keys that follow from others of the file and of flags, or refuses these; may be empty.
  std::function<void(estimator::Json& tree, const estimator::PlanContext&)> derive_keys = nullptr;
};

/// Makes the plan of the entries; of two with the same key the last counts. Throws UserError for
/// values that cannot be read.
ImportedPlan import_entries(std::vector<SourceEntry> entries,
                            const KeyTable& table,
                            const std::string& origin);

/// Adds a use of a technique that no key says.
void add_technique(ImportedPlan& plan, const std::string& name, SourceEntry use);

/// Writes a key of the plan.
void set_key(ImportedPlan& plan, const std::string& path, const estimator::Json& value);
estimator::Json said_key(const ImportedPlan& plan, const std::string& path);

/// Adds what another file says. Where both say a key of the plan, the plan's own value stays.
void merge_under(ImportedPlan& plan, ImportedPlan other);

}  // namespace sim
