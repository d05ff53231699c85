// The flags of one subcommand for keys of a plan, and the values that the user gave.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/json.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {

class PlanFlags {
 public:
  /// Adds all flags and --set, or the flags of one group.
  void add_to(CLI::App& app, std::string_view only_group = {});

  /// Adds the flags of these keys alone, without --set.
  void add_keys_to(CLI::App& app, const std::vector<std::string>& keys);

  bool any_given() const;
  /// The name of a flag that was given and says something else than these keys; "" if there is
  /// none.
  std::string given_beyond(const std::vector<std::string>& keys) const;

  /// Writes the given flags over the plan's tree. `--model` replaces the whole model of a file.
  /// Throws UserError for a value that does not fit the flag, and when two flags disagree.
  void overlay(estimator::Json& tree) const;

  /// Replaces keys in a message by the flags that wrote them: "parallelism.pipeline = 7" becomes
  /// "--pp = 7".
  std::string with_flag_names(std::string text) const;

 private:
  void add_flag(CLI::App& app, const PlanFlag& flag, const std::string& group);

  struct Registered {
    const PlanFlag* flag;
    const CLI::Option* option;
  };
  std::vector<Registered> registered_;
  std::vector<std::string> settings_;  ///< of --set
};

}  // namespace sim
