#include "sim/cli/page/peak_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "estimator/base/module_path.h"
#include "sim/cli/report/module_report.h"

namespace sim {
namespace {

using estimator::PeakAllocation;

/// A tree whose branches are found by name while it grows.
struct GrowingTree {
  std::map<std::string, GrowingTree> modules;
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, TensorGroup>
      tensors;
};

std::string tensor_text(const PeakAllocation& allocation) {
  const std::string shape =
      allocation.shape ? fmt::format("[{}]", fmt::join(*allocation.shape, ", ")) : "no tensor";
  const std::string name = path_pattern(allocation.name, {});
  return name.empty() ? shape : name + " " + shape;
}

std::string place_text_of(const PeakAllocation& allocation) {
  std::string text = allocation.phase;
  if (allocation.direction) text += ", " + estimator::to_string(*allocation.direction);
  if (allocation.frames) {
    for (const std::string& frame : *allocation.frames) text += "\n" + frame;
  }
  return text;
}

void add_tensor(const PeakAllocation& allocation, GrowingTree& module) {
  TensorGroup group{.tensor = tensor_text(allocation),
                    .dtype = allocation.dtype.value_or(""),
                    .category = estimator::to_string(allocation.category),
                    .made_by = allocation.operator_name,
                    .place = place_text_of(allocation)};
  TensorGroup& known =
      module.tensors
          .try_emplace({group.tensor, group.dtype, group.category, group.made_by, group.place},
                       group)
          .first->second;
  ++known.count;
  known.bytes += allocation.bytes;
}

template <class Entry>
void sort_by_bytes(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.bytes > b.bytes;
  });
}

/// Adds up what is in the module; `by_category` gets its bytes too.
PeakTree finished(const std::string& name,
                  const GrowingTree& grown,
                  std::map<std::string, int64_t>& by_category) {
  PeakTree tree{.name = name};
  std::map<std::string, int64_t> here;
  for (const auto& [child, branch] : grown.modules) {
    tree.modules.push_back(finished(child, branch, here));
    tree.count += tree.modules.back().count;
    tree.bytes += tree.modules.back().bytes;
  }
  for (const auto& [key, group] : grown.tensors) {
    tree.tensors.push_back(group);
    tree.count += group.count;
    tree.bytes += group.bytes;
    here[group.category] += group.bytes;
  }
  sort_by_bytes(tree.modules);
  sort_by_bytes(tree.tensors);
  const auto most = std::max_element(
      here.begin(), here.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != here.end()) tree.category = most->first;
  for (const auto& [category, bytes] : here) by_category[category] += bytes;
  return tree;
}

}  // namespace

PeakTree peak_tree(const std::vector<PeakAllocation>& allocations) {
  GrowingTree root;
  for (const PeakAllocation& allocation : allocations) {
    GrowingTree* module = &root;
    const std::string path = allocation.module.empty() ? "(no module)" : allocation.module;
    for (const std::string& element : estimator::path_elements(path)) {
      module = &module->modules[path_pattern(element, {})];
    }
    add_tensor(allocation, *module);
  }
  std::map<std::string, int64_t> all;
  return finished("", root, all);
}

}  // namespace sim
