// The sources of a plan: a file, flags that change it, and environment variables.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/input/pipeline_layers.h"
#include "sim/cli/input/plan_file.h"
#include "sim/cli/input/plan_flags.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/values/plan_input.h"

namespace sim {

class PlanOptions {
 public:
  void add_to(CLI::App& app);
  /// The same for a command whose arguments are plans: see of_file().
  void add_flags_to(CLI::App& app);

  bool has_file() const { return !path_.empty(); }
  const std::string& file() const { return path_; }
  const PlanFlags& flags() const { return flags_; }
  /// The value of --gpus, or "".
  const std::string& typed_gpus() const { return world_size_; }
  /// The name of a flag that was given and says something else than these keys; "" if there is
  /// none.
  std::string given_beyond(const std::vector<std::string>& keys) const;

  /// The flags with several values, --world-size among them: see PlanFlags::several_values().
  std::vector<TypedValues> several_values() const;
  /// The same command line with one value of each of several_values().
  PlanOptions with(const std::vector<TypedChoice>& choices) const;
  /// The same command line for the plan in this file.
  PlanOptions of_file(std::string path) const;

  /// Reads the file, applies the flags and resolves the plan. The world size is taken from
  /// --world-size, else from WORLD_SIZE, else from the plan; the allocator's settings are taken
  /// from the plan, else from PyTorch's variables. Throws UserError with every problem found.
  PlanInput resolve(const Environment& environment) const;
  /// The same without resolving it: the plan of the result is empty. Its keys need not fit together
  /// or be enough for a plan, but each number is in its range.
  PlanInput said(const Environment& environment) const;

  /// The plan's tree as it is written to a file, with what the flags say, and lines that say what
  /// became of another program's file and what it still lacks.
  struct WrittenPlan {
    estimator::JsonValue tree;
    std::string lines;
  };
  WrittenPlan written(const Environment& environment) const;

 private:
  /// Which variable wrote a key of the plan, by the key's path.
  using Writers = std::map<std::string, std::string>;

  PlanInput said(const Environment& environment, Writers& writers) const;
  /// The file that --model gives in place of a name; "" if it gives none.
  std::string file_of_model() const;
  /// The tree of file, flags and variables, and the file if it is another program's. A model in a
  /// file of its own replaces that of the plan.
  PlanFile read_tree(const Environment& environment, Writers& writers) const;
  /// The flags that divide layers among stages, those of the file where none are given.
  PipelineLayers stage_flags(const PlanFile& file) const;
  /// --ignore is for other programs' files alone.
  void refuse_ignored() const;
  std::string import_lines(const ImportedPlan& imported) const;
  std::vector<estimator::Problem> with_origins(std::vector<estimator::Problem> problems,
                                               const std::string& origin,
                                               const Writers& writers) const;
  /// Calls `read`. The problems that it throws name what the user typed.
  void with_names(const PlanInput& input,
                  const Writers& writers,
                  const std::function<void()>& read) const;
  estimator::PlanContext context(const Environment& environment) const;

  std::string path_;
  std::string world_size_;
  std::vector<std::string> ignored_;
  std::optional<std::string> script_arguments_;
  bool verbose_ = false;
  PlanFlags flags_;
  PipelineLayers pipeline_layers_;
};

}  // namespace sim
