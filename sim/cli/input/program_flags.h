// Flags that say of a program's training what its trace does not tell: tokens, length, price. Those
// that plans have too are theirs, by name and meaning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/program/program_run.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/input/plan_flags.h"

namespace sim {

/// Keys of a plan that are said of a program too.
const std::vector<std::string>& keys_of_programs();

/// --measured-step, which plans and programs have.
class MeasuredStepFlag {
 public:
  void add_to(CLI::App& app);
  bool is_given() const { return !text_.empty(); }
  /// Throws UserError for what is no time.
  std::optional<double> seconds() const;

 private:
  std::string text_;
};

class ProgramFlags {
 public:
  /// Adds the flags that plans do not have.
  void add_to(CLI::App& app);

  bool any_given() const { return !given().empty(); }
  /// Names of the flags that were given, of those that add_to() added.
  std::vector<std::string> given() const;

  /// What was said, by these flags and by `plan_flags`. Throws UserError for a value that does not
  /// fit its flag.
  estimator::ProgramRun run(const PlanFlags& plan_flags) const;

 private:
  const CLI::App* app_ = nullptr;
  std::string tokens_per_step_;
};

}  // namespace sim
