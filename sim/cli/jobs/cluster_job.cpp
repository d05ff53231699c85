#include "sim/cli/jobs/cluster_job.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "estimator/base/files.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/hardware/hardware.h"
#include "estimator/what_if/least_bytes.h"
#include "estimator/what_if/plan_changes.h"
#include "estimator/what_if/typed_flags.h"
#include "sim/cli/programs/exec_process.h"
#include "sim/cli/report/rank_memory_report.h"
#include "sim/cli/report/verdict_report.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::RankProfile;
using estimator::UserError;

/// Ranks that were run and left an error have no part in a verdict, which is none without them.
void refuse_failed(std::vector<std::string> errors) {
  std::sort(errors.begin(), errors.end());
  std::vector<estimator::Problem> problems;
  for (const std::string& path : errors) {
    const std::string text = estimator::read_file(path);
    problems.push_back({.what = fmt::format("{} is there instead of a profile", path),
                        .where = text.substr(0, text.find('\n')),
                        .help = "run the rank again, or delete the file to do without it"});
  }
  if (!problems.empty()) throw UserError(problems, estimator::ExitCode::kMachineLacks);
}

/// All rank-*.json of a folder, by name.
std::vector<RankProfile> read_profiles(const std::string& folder) {
  std::vector<std::string> paths;
  std::vector<std::string> errors;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (!path.filename().string().starts_with("rank-")) continue;
    if (path.extension() == ".json") paths.push_back(path.string());
    const bool is_error = path.extension() == kErrorExtension;
    if (is_error && !fs::exists(fs::path(path).replace_extension(".json"))) {
      errors.push_back(path.string());
    }
  }
  refuse_failed(std::move(errors));
  if (error || paths.empty()) {
    throw UserError(
        {.what = fmt::format("cannot read profiles from {}", folder),
         .where = error ? error.message() : "no file there is named rank-*.json",
         .help = "make them with `onerank run --output` or `onerank estimate --keep-profiles`"});
  }
  std::sort(paths.begin(), paths.end());
  std::vector<RankProfile> profiles;
  profiles.reserve(paths.size());
  for (const std::string& path : paths) {
    profiles.push_back(estimator::read_rank_profile(estimator::read_file(path), path));
  }
  return profiles;
}

/// A profile of another device than the plan's GPU, real or virtual, stands for it only where the
/// user says so.
void check_device(const RankProfile& profile,
                  const estimator::Plan& plan,
                  std::optional<DeviceKind> named) {
  const estimator::DeviceRecord& device = profile.device;
  const bool is_plans_gpu =
      device.kind != DeviceKind::kCpu && estimator::find_gpu(device.gpu) != nullptr &&
      estimator::find_gpu(device.gpu) == estimator::find_gpu(plan.cluster.gpu);
  if (is_plans_gpu || named == device.kind) return;
  const std::string kind = estimator::to_string(device.kind);
  throw UserError(
      {.what = fmt::format("the profile of rank {} is of another device than the plan's GPU",
                           profile.rank),
       .where = fmt::format("device.kind = {}, device.name = {}, cluster.gpu = {}",
                            kind,
                            device.name,
                            plan.cluster.gpu),
       .help = fmt::format("run the rank on --device virtual, or let this one stand for it with "
                           "--device {}",
                           kind)});
}

}  // namespace

std::string ClusterResult::lacking_gpus() const {
  const int64_t world_size = input.plan.world_size();
  if (!estimate.lacks_gpus(world_size)) return "";
  int64_t most = input.plan.cluster.gpus_per_node;  // a search doubles machines
  while (most < estimate.whole_state->fewest_gpus) most *= 2;
  return lacking_gpus_text(
      estimate,
      world_size,
      estimator::can_offload_optimizer(input.spec),
      estimator::search_to_type(input.spec, input.plan, {"--max-gpus", 2 * most}));
}

std::string ClusterResult::search_instead() const {
  std::string lacking = lacking_gpus();
  if (!lacking.empty() || !estimator::state_alone_is_too_large(input.plan)) return lacking;
  return lacking_ranks_text(
      estimator::least_bytes(input.plan),
      estimator::search_to_type(input.spec, input.plan, {"--gpus", input.plan.world_size()}));
}

void refuse_flag_of_plans(const std::string& flag) {
  throw UserError({.what = "the flag is for plans only",
                   .where = fmt::format("{} with the profiles of a program", flag),
                   .help = fmt::format("leave out {}", flag)});
}

std::optional<estimator::Calibration> ClusterJob::calibration_in(const std::string& path,
                                                                 const std::string& gpu) const {
  if (path.empty()) return std::nullopt;
  estimator::Calibration calibration =
      estimator::read_calibration(estimator::read_file(path), path);
  check_calibration_is_of(calibration, *estimator::find_gpu(gpu), path);
  return calibration;
}

std::optional<estimator::Calibration> ClusterJob::calibration_of(
    const estimator::Plan& plan) const {
  const std::string& path = calibration_file_.empty() ? plan.time.calibration : calibration_file_;
  return calibration_in(path, plan.cluster.gpu);
}

std::optional<estimator::Calibration> ClusterJob::calibration_of(
    const std::vector<RankProfile>& program) const {
  const std::string& gpu = program.front().device.gpu;
  if (estimator::find_gpu(gpu) == nullptr) return std::nullopt;  // the estimate refuses it
  return calibration_in(calibration_file_, gpu);
}

void ClusterJob::add_to(CLI::App& app) {
  plan_.add_to(app);
  ranks_.add_to(app);
  ranks_.add_memory_flags_to(app);
  app.add_option("--profiles",
                 profiles_folder_,
                 "use the profiles rank-*.json in this folder, and run no ranks")
      ->type_name("DIR")
      ->group("Execution");
  add_calibration_to(app);
}

void ClusterJob::add_flags_for_many_plans_to(CLI::App& app, bool takes_plan) {
  takes_plan ? plan_.add_to(app) : plan_.add_flags_to(app);
  ranks_.add_to(app);
  app.add_option("--store",
                 store_,
                 "keep what each executed rank gave in this folder, and run no rank that it has; "
                 "several machines may share it")
      ->type_name("DIR")
      ->group("Execution");
  add_calibration_to(app);
}

ClusterJob ClusterJob::of_file(std::string path) const {
  ClusterJob other = *this;
  other.plan_ = plan_.of_file(std::move(path));
  return other;
}

RankJob ClusterJob::rank_job(const Environment& environment) const {
  RankJob job = ranks_.job({}, environment);
  job.store = store_;
  return job;
}

void ClusterJob::add_calibration_to(CLI::App& app) {
  app.add_option("--calibration",
                 calibration_file_,
                 "use the rates that `onerank calibrate` measured on the plan's GPU, and not "
                 "time.calibration")
      ->type_name("FILE")
      ->group("Execution");
}

std::vector<RankProfile> ClusterJob::program_profiles(const std::vector<std::string>& keys) const {
  if (profiles_folder_.empty() || plan_.has_file()) return {};
  std::vector<RankProfile> profiles = read_profiles(profiles_folder_);
  if (!profiles.front().program) return {};
  if (const std::string flag = plan_.given_beyond(keys); !flag.empty()) {
    refuse_flag_of_plans(flag);
  }
  return profiles;
}

std::vector<RankProfile> ClusterJob::profiles(const estimator::Plan& plan,
                                              const Environment& environment) const {
  if (!profiles_folder_.empty()) {
    std::vector<RankProfile> profiles = read_profiles(profiles_folder_);
    for (const RankProfile& profile : profiles) {
      check_device(profile, plan, ranks_.named_device());
    }
    return profiles;
  }
  std::vector<int64_t> ranks;
  for (const estimator::RankClass& rank_class : estimator::rank_classes(plan)) {
    ranks.push_back(rank_class.representative_rank);
  }
  const RankJob job = ranks_.job(std::move(ranks), environment);
  return run_ranks(plan, job, environment, standard_error_display());
}

estimator::PlanRunner ClusterJob::runner(const estimator::Plan& plan,
                                         const Environment& environment) const {
  if (!runs_ranks()) {
    throw UserError({.what = "profiles are valid only for their own plan",
                     .where = "--profiles " + profiles_folder_,
                     .help = "leave it out: other plans have to be run"});
  }
  const auto what = std::make_shared<std::string>("running ranks");
  const auto run = [this, &environment, what](const estimator::Plan& other,
                                              const std::vector<int64_t>& ranks) {
    RankJob job = ranks_.job(ranks, environment);
    job.what = *what;
    return run_ranks(other, job, environment, standard_error_display());
  };
  const auto announce = [what](const std::string& tried) { *what = "advice: trying " + tried; };
  return {.run = run, .calibration = calibration_of(plan), .announce = announce};
}

ClusterResult ClusterJob::run(const Environment& environment) const {
  ClusterResult result;
  result.input = plan_.resolve(environment);
  const estimator::Plan& plan = result.input.plan;
  result.calibration = calibration_of(plan);
  result.profiles = profiles(plan, environment);
  result.estimate = estimator::estimate_cluster(plan, result.profiles, result.rates());
  return result;
}

std::optional<RankDetail> ClusterJob::worst_rank_detail(const ClusterResult& result,
                                                        const Environment& environment) const {
  if (!runs_ranks()) return std::nullopt;
  const int64_t rank = result.estimate.verdict.worst_rank;
  const auto* const worst = worst_class(result.estimate.verdict, result.estimate.rank_classes);
  const DetailFiles files({});
  RankJob job = ranks_.job({rank}, environment);
  job.attribute_memory = true;
  job.lift_limit = worst != nullptr && worst->limit_lifted;
  job.memory_files = files.paths();
  run_ranks(result.input.plan, job, environment, standard_error_display());
  return files.read(rank, 1);
}

}  // namespace sim
