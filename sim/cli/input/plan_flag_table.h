// The flags that stand for keys of a plan, under the headings of the help: Megatron-LM's names,
// with the short ones that people say. They come from the options of a plan
// (estimator/plan/options.h).
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/option_table.h"

namespace sim {

/// One flag, and the key of the plan that it writes.
struct PlanFlag {
  estimator::OptionFlag said;
  std::string path;  ///< "parallelism.tensor"; "": taken, and says nothing new
  estimator::OptionType type = estimator::OptionType::kSwitch;
  std::string placeholder;  ///< of its value in the help: "N"
  std::string help;         ///< with the words that it may be, and what holds without it

  bool is_switch() const { return !said.constant.empty() || path.empty(); }
  /// The last name: the one that people say.
  const std::string& short_name() const { return said.names.back(); }
  /// "--tensor-model-parallel-size,--tp"
  std::string names() const;
};

/// Flags under one heading of the help.
struct PlanFlagGroup {
  std::string title;
  std::vector<PlanFlag> flags;
};

/// The group of the machines and their network, which some subcommands take alone.
inline constexpr const char* kClusterFlags = "Cluster";

/// All flags.
const std::vector<PlanFlagGroup>& plan_flag_groups();

}  // namespace sim
