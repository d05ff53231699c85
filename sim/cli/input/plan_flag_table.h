// The table of flags that stand for keys of a plan: Megatron-LM's names, with the short ones that
// people say.
#pragma once

#include <string>
#include <vector>

namespace sim {

enum class FlagKind {
  kWhole,    ///< a whole number
  kReal,     ///< a finite number
  kText,     ///< a word
  kLayers,   ///< whole numbers with commas, or kEvenLayers
  kPattern,  ///< the same, or Megatron-LM's "([0]*3+[1]*58)"
  kPaths,    ///< files with commas
  kSwitch,   ///< takes no value; writes `constant`
};

/// The same number of layers on every stage.
inline constexpr const char* kEvenLayers = "even";

/// One flag, and the key of the plan that it writes.
struct PlanFlag {
  const char* names;  ///< "--tensor-model-parallel-size,--tp": Megatron's name first
  const char* path;   ///< "parallelism.tensor"; "": taken, and says nothing new
  FlagKind kind;
  const char* help;
  const char* constant = "";  ///< of a switch, as JSON
  const char* synonyms = "";  ///< of a word: "adam=adamw": Megatron's word = the plan's
  bool yields = false;  ///< another flag that writes the same key says it, where both are given

  /// The last name: the one that people say.
  std::string short_name() const;
};

/// Flags under one heading of the help.
struct PlanFlagGroup {
  const char* title;
  std::vector<PlanFlag> flags;
};

/// The group of the machines and their network, which some subcommands take alone.
inline constexpr const char* kClusterFlags = "Cluster";

/// All flags.
const std::vector<PlanFlagGroup>& plan_flag_groups();

}  // namespace sim
