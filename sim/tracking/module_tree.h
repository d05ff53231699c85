// The modules that a run has entered. Each has a small number, and what a profile says about it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "estimator/base/option.h"

namespace sim {

/// The part of the model to which a module belongs, found from the names in its path (see
/// module_tree.cpp).
enum class ModuleKind {
  kOther,
  kAttention,
  kMlp,
  kNorm,
  kEmbedding,
  kHead,
  kOptimizer,
  kGradients,
  kExperts,
  kRouting,
};
constexpr std::array<estimator::EnumName<ModuleKind>, 10> enum_names(ModuleKind) {
  return {{{ModuleKind::kOther, "other"},
           {ModuleKind::kAttention, "attention"},
           {ModuleKind::kMlp, "mlp"},
           {ModuleKind::kNorm, "norm"},
           {ModuleKind::kEmbedding, "embedding"},
           {ModuleKind::kHead, "head"},
           {ModuleKind::kOptimizer, "optimizer"},
           {ModuleKind::kGradients, "gradients"},
           {ModuleKind::kExperts, "experts"},
           {ModuleKind::kRouting, "routing"}}};
}

using ModuleId = int32_t;
inline constexpr ModuleId kRootModule = 0;

struct Module {
  std::string path;   ///< "layers.3.mlp.linear_fc1", "" for the root
  std::string group;  ///< the same for all layers, one level into a layer: "layers.*.mlp"
  ModuleKind kind = ModuleKind::kOther;
};

/// All modules that were asked for. Ids stay valid; looking up a known module allocates nothing.
class ModuleTree {
 public:
  ModuleTree() : nodes_(1) {}

  /// The module at `path` from the root: "layers.3.mlp" is "mlp" in "layers.3".
  ModuleId at(std::string_view path);
  /// The module `name`, one path element such as "layers.3" or "mlp", inside `parent`.
  ModuleId child(ModuleId parent, std::string_view name);
  const Module& module(ModuleId id) const { return nodes_.at(id).module; }
  /// The parent of a module; that of the root is the root.
  ModuleId parent(ModuleId id) const { return nodes_.at(id).parent; }
  /// Ids are 0 to size() - 1. The id of a parent is smaller than those of its children.
  ModuleId size() const { return static_cast<ModuleId>(nodes_.size()); }

 private:
  struct Node {
    Module module;
    ModuleId parent = kRootModule;
    bool group_is_open = true;  ///< a child adds its name to the group
    std::map<std::string, ModuleId, std::less<>> children;
  };

  std::deque<Node> nodes_;
};

}  // namespace sim
