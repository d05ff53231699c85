#include "sim/tracking/module_tree.h"

#include <array>
#include <utility>

#include "estimator/base/text.h"

namespace sim {
namespace {

struct NamedKind {
  std::string_view part_of_name;
  ModuleKind kind;
};

/// The first row whose text is part of an element's name decides. Norms come first: they are often
/// named after what they stand before ("pre_mlp_norm").
constexpr std::array<NamedKind, 10> kKindsByName = {{{"norm", ModuleKind::kNorm},
                                                     {"attention", ModuleKind::kAttention},
                                                     {"mlp", ModuleKind::kMlp},
                                                     {"embedding", ModuleKind::kEmbedding},
                                                     {"output", ModuleKind::kHead},
                                                     {"head", ModuleKind::kHead},
                                                     {"loss", ModuleKind::kHead},
                                                     {"eh_proj", ModuleKind::kHead},
                                                     {"optimizer", ModuleKind::kOptimizer},
                                                     {"gradient", ModuleKind::kGradients}}};

/// The parts of an MLP that is a mixture of experts.
constexpr std::array<NamedKind, 5> kPartsOfMlp = {{{"experts", ModuleKind::kExperts},
                                                   {"router", ModuleKind::kRouting},
                                                   {"preprocess", ModuleKind::kRouting},
                                                   {"dispatch", ModuleKind::kRouting},
                                                   {"combine", ModuleKind::kRouting}}};

/// Outer elements decide before inner ones: the output projection of an attention is attention.
ModuleKind kind_of(ModuleKind parent, std::string_view name) {
  if (parent == ModuleKind::kMlp) {
    for (const NamedKind& row : kPartsOfMlp) {
      if (name == row.part_of_name) return row.kind;
    }
  }
  if (parent != ModuleKind::kOther) return parent;
  for (const NamedKind& row : kKindsByName) {
    if (name.find(row.part_of_name) != std::string_view::npos) return row.kind;
  }
  return ModuleKind::kOther;
}

std::string joined(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : parent + "." + std::string(name);
}

/// "layers.3" -> "layers.*"; a name without a number stays as it is.
std::string without_index(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view tail = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  if (!estimator::is_digits(tail)) return std::string(name);
  return std::string(name.substr(0, dot + 1)) + "*";
}

}  // namespace

ModuleId ModuleTree::at(std::string_view path) {
  ModuleId module = kRootModule;
  while (!path.empty()) {
    size_t end = path.find('.');
    if (end != path.npos &&
        estimator::is_digits(path.substr(end + 1, path.find('.', end + 1) - end - 1))) {
      end = path.find('.', end + 1);
    }
    module = child(module, path.substr(0, end));
    path = end == path.npos ? "" : path.substr(end + 1);
  }
  return module;
}

ModuleId ModuleTree::child(ModuleId parent, std::string_view name) {
  Node& parent_node = nodes_.at(parent);
  const auto known = parent_node.children.find(name);
  if (known != parent_node.children.end()) return known->second;

  const Module& above = parent_node.module;
  const std::string general_name = without_index(name);
  Node node;
  node.module = {
      .path = joined(above.path, name),
      .group = parent_node.group_is_open ? joined(above.group, general_name) : above.group,
      .kind = kind_of(above.kind, name),
  };
  node.parent = parent;
  node.group_is_open = parent_node.group_is_open && general_name != name;
  const auto id = static_cast<ModuleId>(nodes_.size());
  parent_node.children.emplace(name, id);
  nodes_.push_back(std::move(node));
  return id;
}

}  // namespace sim
