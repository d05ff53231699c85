// Makes the estimate of a cluster from a command line. `estimate` and `check` share it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/estimate_cluster.h"
#include "estimator/compute/calibration.h"
#include "estimator/what_if/fit_probe.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/input/rank_options.h"
#include "sim/cli/page/rank_detail.h"

namespace sim {

struct ClusterResult {
  PlanInput input;
  std::vector<estimator::RankProfile> profiles;
  std::optional<estimator::Calibration> calibration;
  estimator::ClusterEstimate estimate;

  /// The rates of the calibration, or null.
  const estimator::Calibration* rates() const { return calibration ? &*calibration : nullptr; }
  /// Why no layout of the plan's GPUs fits, and what to type; "" where that is not why.
  std::string lacking_gpus() const;
  /// The same, or what to type where only this layout cannot hold the model's state.
  std::string search_instead() const;
  estimator::StepTimeline timeline() const {
    return estimator::cluster_timeline(input.plan, profiles, rates());
  }
};

/// For a flag that has no answer for a program.
[[noreturn]] void refuse_flag_of_plans(const std::string& flag);

class ClusterJob {
 public:
  void add_to(CLI::App& app);
  /// The same for a command that runs many plans: without --profiles and memory files, with
  /// --store, and without the argument PLAN, unless it takes one.
  void add_flags_for_many_plans_to(CLI::App& app, bool takes_plan);

  const PlanOptions& plan() const { return plan_; }
  /// The folder of --store, or "".
  const std::string& store() const { return store_; }
  /// The path of --calibration, or "".
  const std::string& calibration_file() const { return calibration_file_; }
  /// The same command line for the plan in this file.
  ClusterJob of_file(std::string path) const;
  /// How the ranks of plans are run that are not the one of the command line: with --store.
  RankJob rank_job(const Environment& environment) const;

  /// The profiles of --profiles, if they are of a program (`onerank exec`) and no plan file is
  /// given; else empty. Throws UserError if they are of a program, and a flag is given that says
  /// something else than these keys of a plan.
  std::vector<estimator::RankProfile> program_profiles(const std::vector<std::string>& keys) const;
  /// The flags of a plan that were given, some of which a program has too.
  const PlanFlags& plan_flags() const { return plan_.flags(); }

  /// Resolves the plan, runs one rank of each class (or reads --profiles), and makes the estimate
  /// with the rates of --calibration. Throws UserError as read_calibration(),
  /// PlanOptions::resolve(), run_ranks() and estimate_cluster() do.
  ClusterResult run(const Environment& environment) const;

  /// The worst rank of the result, run once more with its memory in detail; empty with --profiles.
  std::optional<RankDetail> worst_rank_detail(const ClusterResult& result,
                                              const Environment& environment) const;

  /// Only resolves the plan.
  PlanInput resolve(const Environment& environment) const { return plan_.resolve(environment); }
  /// A runner that runs ranks of plans like `plan` in the same way. Throws UserError with
  /// --profiles, because then nothing is run.
  estimator::PlanRunner runner(const estimator::Plan& plan, const Environment& environment) const;
  bool runs_ranks() const { return profiles_folder_.empty(); }

  /// The calibration of --calibration, or else of the plan.
  std::optional<estimator::Calibration> calibration_of(const estimator::Plan& plan) const;
  /// The calibration of --calibration for a program's profiles; empty without the flag. Throws
  /// UserError if it is of another GPU.
  std::optional<estimator::Calibration> calibration_of(
      const std::vector<estimator::RankProfile>& program) const;

 private:
  void add_calibration_to(CLI::App& app);
  std::vector<estimator::RankProfile> profiles(const estimator::Plan& plan,
                                               const Environment& environment) const;

  /// The calibration in a file; empty for "". Throws UserError if it is of another GPU.
  std::optional<estimator::Calibration> calibration_in(const std::string& path,
                                                       const std::string& gpu) const;

  PlanOptions plan_;
  RankOptions ranks_;
  std::string profiles_folder_;
  std::string store_;
  std::string calibration_file_;
};

}  // namespace sim
