#include "estimator/resolve/plan_spec.h"

#include <algorithm>
#include <utility>

#include "estimator/base/fields.h"
#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

PlanEdits merged(PlanEdits first, const PlanEdits& then) {
  for (const PlanEdit& edit : then) {
    const auto same = std::find_if(
        first.begin(), first.end(), [&](const PlanEdit& other) { return other.path == edit.path; });
    same == first.end() ? first.push_back(edit) : void(*same = edit);
  }
  return first;
}

Json PlanSpec::said(std::string_view path) const {
  Json value = find_in_tree(tree.json(), path);
  const bool says_nothing = value == "auto" || value == "" || (value.is_array() && value.empty());
  return says_nothing ? Json() : value;
}

bool PlanSpec::says(std::string_view path) const { return !said(path).is_null(); }

PlanSpec PlanSpec::with(const PlanEdits& edits) const {
  Json changed = tree.json();
  for (const PlanEdit& edit : edits) set_in_tree(changed, edit.path, edit.value.json(), edit.path);
  return {.tree = std::move(changed), .context = context, .derive_keys = derive_keys};
}

Plan resolve_plan(const PlanSpec& spec) {
  const Json& said = spec.tree.json();
  if (!spec.derive_keys || !said.is_object()) return resolve_plan(said, spec.context);
  Json tree = said;
  spec.derive_keys(tree);
  return resolve_plan(tree, spec.context);
}

}  // namespace estimator
