// The flags of one subcommand for keys of a plan, and the values that the user gave.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/json.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {

/// The values that were typed behind one flag, such as "--tp 1,2,4".
struct TypedValues {
  std::string flag;  ///< "--tp", or "--set" with the key: "--set training.seed"
  std::string path;  ///< "parallelism.tensor"
  std::vector<std::string> values;
};

/// One value for a flag: `flag` as in TypedValues, and what is typed behind it.
struct TypedChoice {
  std::string flag;
  std::string value;
};

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

  /// The given flags with several values, in the order in which they are registered. Values stand
  /// between commas, or between semicolons if a value has commas itself; a list and the settings of
  /// the allocator have commas.
  std::vector<TypedValues> several_values() const;
  /// As if this value alone had been typed behind the flag, one of several_values().
  void choose(const TypedChoice& choice);

  /// What was typed behind a flag of this key; "" if there is none.
  std::string typed(const std::string& path) const;

  /// The key that the option writes with this value; "" if it is no flag of a plan.
  std::string key_of(const CLI::Option& option, const std::string& value) const;

  /// Writes the given flags over the plan's tree. `--model` replaces the whole model of a file.
  /// Throws UserError for a value that does not fit the flag, and when two flags disagree.
  void overlay(estimator::Json& tree) const { overlay(tree, ""); }
  /// The same without the flags of the key `except`.
  void overlay(estimator::Json& tree, const std::string& except) const;

  /// Replaces keys in a message by the flags that wrote them: "parallelism.pipeline = 7" becomes
  /// "--pp = 7".
  std::string with_flag_names(std::string text) const;

 private:
  /// What counts of what was typed behind the flag.
  std::string typed(const PlanFlag& flag, const CLI::Option& option) const;
  void add_flag(CLI::App& app, const PlanFlag& flag, const std::string& group);

  struct Registered {
    const PlanFlag* flag;
    const CLI::Option* option;
  };
  std::vector<Registered> registered_;
  std::map<const PlanFlag*, std::string> chosen_;
  std::vector<std::string> settings_;  ///< of --set
};

}  // namespace sim
