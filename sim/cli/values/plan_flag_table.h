// The flags for keys of a plan, grouped by the headings of the help. They have Megatron-LM's names
// and the usual short names, and are made from the options of a plan (estimator/plan/options.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/plan/option_table.h"

namespace sim {

/// One flag, and the key of the plan that it writes.
struct PlanFlag {
  estimator::OptionFlag said;
  std::string path;  ///< "parallelism.tensor"; "": accepted without effect
  estimator::OptionType type = estimator::OptionType::kSwitch;
  std::string placeholder;              ///< stands for its value in the help: "N"
  std::string help;                     ///< with the allowed words and the default
  std::vector<std::string> words = {};  ///< that its value may be; empty: a number, or any text

  bool is_switch() const { return !said.constant.empty() || path.empty(); }
  /// The last name, which is the usual short one.
  const std::string& short_name() const { return said.names.back(); }
  /// "--tensor-model-parallel-size,--tp"
  std::string names() const;
};

/// Flags under one heading of the help.
struct PlanFlagGroup {
  std::string title;
  std::vector<PlanFlag> flags;
};

/// The title of the group for machines and their network. Some subcommands have only this group.
inline constexpr const char* kClusterFlags = "Cluster";

/// All flags, by group.
const std::vector<PlanFlagGroup>& plan_flag_groups();

/// The flag with this name, "--tensor-model-parallel-size" or "--tp"; null when there is none.
const PlanFlag* find_plan_flag(std::string_view name);

}  // namespace sim
