#include "estimator/plan/plan_spec.h"

#include <algorithm>

#include "estimator/plan/plan_tree.h"

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
  Json value = find_in_tree(tree, path);
  const bool says_nothing = value == "auto" || value == "" || (value.is_array() && value.empty());
  return says_nothing ? Json() : value;
}

PlanSpec PlanSpec::with(const PlanEdits& edits) const {
  PlanSpec changed = *this;
  for (const PlanEdit& edit : edits) set_in_tree(changed.tree, edit.path, edit.value, edit.path);
  return changed;
}

Plan resolve_plan(const PlanSpec& spec) {
  if (!spec.derive_keys || !spec.tree.is_object()) return resolve_plan(spec.tree, spec.context);
  Json tree = spec.tree;
  spec.derive_keys(tree);
  return resolve_plan(tree, spec.context);
}

}  // namespace estimator
