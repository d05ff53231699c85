// The sources of a plan: a file, flags that change it, and environment variables.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "estimator/plan/plan_spec.h"
#include "sim/cli/input/pipeline_layers.h"
#include "sim/cli/input/plan_flags.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// What the user gave for a plan, the resolved plan, and where the parts that are not in the plan
/// came from.
struct PlanInput {
  estimator::PlanSpec spec;
  estimator::Plan plan;
  std::string world_size_origin;  ///< "WORLD_SIZE", "--world-size" or "the plan"
  std::string allocator_origin;   ///< a variable's name, "the plan", or "" if there are none
};

class PlanOptions {
 public:
  void add_to(CLI::App& app);

  bool has_file() const { return !path_.empty(); }
  const PlanFlags& flags() const { return flags_; }
  /// The name of a flag that was given and says something else than these keys; "" if there is
  /// none.
  std::string given_beyond(const std::vector<std::string>& keys) const;

  /// Reads the file, applies the flags and resolves the plan. The world size is taken from
  /// --world-size, else from WORLD_SIZE, else from the plan; the allocator's settings are taken
  /// from the plan, else from PyTorch's variables. Throws UserError with every problem found.
  PlanInput resolve(const Environment& environment) const;

 private:
  /// Which variable wrote a key of the plan, by the key's path.
  using Writers = std::map<std::string, std::string>;

  estimator::Json read_tree(const Environment& environment, Writers& writers) const;
  std::vector<estimator::Problem> with_origins(std::vector<estimator::Problem> problems,
                                               const std::string& origin,
                                               const Writers& writers) const;
  estimator::PlanContext context(const Environment& environment) const;

  std::string path_;
  std::string world_size_;
  PlanFlags flags_;
  PipelineLayers pipeline_layers_;
};

}  // namespace sim
