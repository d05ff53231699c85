// From a command line to the estimate of a cluster: what `estimate` and `check` share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/estimate_cluster.h"
#include "estimator/compute/calibration.h"
#include "estimator/what_if/fit_probe.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/input/rank_options.h"

namespace sim {

struct ClusterResult {
  PlanInput input;
  std::vector<estimator::RankProfile> profiles;
  std::optional<estimator::Calibration> calibration;
  estimator::ClusterEstimate estimate;

  /// Those of the calibration, or null.
  const estimator::Calibration* rates() const { return calibration ? &*calibration : nullptr; }
  estimator::StepTimeline timeline() const {
    return estimator::cluster_timeline(input.plan, profiles, rates());
  }
};

class ClusterJob {
 public:
  void add_to(CLI::App& app);

  /// The profiles of --profiles, when they are of a program (`onerank exec`) and no plan is given;
  /// else nothing.
  std::vector<estimator::RankProfile> program_profiles() const;

  /// Resolves the plan, runs one rank of each class (or reads --profiles), and estimates, with the
  /// rates of --calibration. Throws UserError as read_calibration(), PlanOptions::resolve(),
  /// run_ranks() and estimate_cluster() do.
  ClusterResult run(const Environment& environment) const;

  /// The plan alone, resolved.
  PlanInput resolve(const Environment& environment) const { return plan_.resolve(environment); }
  /// Runs ranks of plans like `plan` in the same way. Throws UserError with --profiles, which runs
  /// nothing.
  estimator::PlanRunner runner(const estimator::Plan& plan, const Environment& environment) const;
  bool runs_ranks() const { return profiles_folder_.empty(); }

 private:
  std::vector<estimator::RankProfile> profiles(const estimator::Plan& plan,
                                               const Environment& environment) const;

  /// Of --calibration, or else the plan's.
  std::optional<estimator::Calibration> calibration_of(const estimator::Plan& plan) const;

  PlanOptions plan_;
  RankOptions ranks_;
  std::string profiles_folder_;
  std::string calibration_file_;
};

}  // namespace sim
