// A PlanSpec holds only what the file, the flags and the environment give. A Plan is what this
// means, with presets and defaults filled in. To answer a question such as "and with twice the
// tensor ranks?", the PlanSpec is changed and resolved again. Then all values that were left to
// "auto" follow the change, as they do when a user types it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/json_value.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

/// A new value for one key.
struct PlanEdit {
  std::string path;  ///< "parallelism.tensor"
  JsonValue value;   ///< as in a plan; "auto" if Onerank can choose it

  bool operator==(const PlanEdit&) const = default;
};
using PlanEdits = std::vector<PlanEdit>;

/// Both lists as one. A later edit of a key replaces an earlier one.
PlanEdits merged(PlanEdits first, const PlanEdits& then);

struct PlanSpec {
  JsonValue tree;  ///< the keys that were given, and no others
  PlanContext context;
  /// Writes keys that follow from other keys; may be empty. For example, Megatron-LM's
  /// --decoder-first-pipeline-num-layers gives the layers of every stage, for any number of stages.
  std::function<void(Json& tree)> derive_keys = nullptr;

  /// The value that was given. Null if none was given, and for "auto" and the empty list, which
  /// mean the same.
  Json said(std::string_view path) const;
  bool says(std::string_view path) const;
  /// Whether the world size is given, so that it does not depend on the parallel degrees.
  bool says_world() const { return context.world_size || says("cluster.nodes"); }

  PlanSpec with(const PlanEdits& edits) const;
};

/// The plan that `spec` means. Throws UserError with every problem found.
Plan resolve_plan(const PlanSpec& spec);

}  // namespace estimator
