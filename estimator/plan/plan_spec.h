// What is said of a plan and what it means are two things. A PlanSpec holds what file, flags and
// environment say, and nothing more; a Plan is what that means, with presets and defaults filled
// in. A question such as "and with twice the tensor ranks?" changes what is said and asks again
// what it means: then what was left to "auto" follows, as it does for a user who types the change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimator/base/fields.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// One key that is said anew.
struct PlanEdit {
  std::string path;  ///< "parallelism.tensor"
  Json value;        ///< as in a plan; "auto" where the key can be left to Onerank

  bool operator==(const PlanEdit&) const = default;
};
using PlanEdits = std::vector<PlanEdit>;

/// Both, where the later edit of a key replaces the earlier.
PlanEdits merged(PlanEdits first, const PlanEdits& then);

struct PlanSpec {
  Json tree;  ///< the keys that were given, and no others
  PlanContext context;
  /// Writes keys that follow from others: Megatron-LM's --decoder-first-pipeline-num-layers stands
  /// for the layers of every stage, however many stages there are. May be empty.
  std::function<void(Json& tree)> derive_keys = nullptr;

  /// The value that was given, or null; "auto" and the empty list say as little.
  Json said(std::string_view path) const;
  bool says(std::string_view path) const { return !said(path).is_null(); }
  /// Whether the size of the world does not depend on the parallel degrees.
  bool says_world() const { return context.world_size || says("cluster.nodes"); }

  PlanSpec with(const PlanEdits& edits) const;
};

/// What it means. Throws UserError with every problem found.
Plan resolve_plan(const PlanSpec& spec);

}  // namespace estimator
