// The modules that a run has entered, each with a small number and what a profile says of it.
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

/// Which part of the model, by the names of the path's elements (see module_tree.cpp).
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
  std::string path;   ///< "layers.3.mlp.up", "" for the root
  std::string group;  ///< the same place in all layers, one level into a layer: "layers.*.mlp"
  ModuleKind kind = ModuleKind::kOther;
};

/// Every path that was asked for. Ids stay valid; entering a known module allocates nothing.
class ModuleTree {
 public:
  ModuleTree() : nodes_(1) {}

  /// The module at `path` from the root: "layers.3.mlp" is "mlp" in "layers.3".
  ModuleId at(std::string_view path);
  /// The module `name`, one path element such as "layers.3" or "mlp", inside `parent`.
  ModuleId child(ModuleId parent, std::string_view name);
  const Module& module(ModuleId id) const { return nodes_.at(id).module; }
  /// Of the root: the root.
  ModuleId parent(ModuleId id) const { return nodes_.at(id).parent; }
  /// Ids are 0 to size() - 1; a parent's is smaller than its children's.
  ModuleId size() const { return static_cast<ModuleId>(nodes_.size()); }

 private:
  struct Node {
    Module module;
    ModuleId parent = kRootModule;
    bool group_is_open = true;  ///< the group takes one more element
    std::map<std::string, ModuleId, std::less<>> children;
  };

  std::deque<Node> nodes_;
};

}  // namespace sim
