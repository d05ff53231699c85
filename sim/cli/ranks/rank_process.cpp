#include "sim/cli/ranks/rank_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <stdexcept>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/ranks/rank_program.h"
#include "sim/cli/ranks/rank_store.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::Json;
using estimator::Plan;
using estimator::RankProfile;
using estimator::UserError;

/// How ranks are to be run, whichever they are.
std::vector<std::string> job_arguments(const RankJob& job) {
  std::vector<std::string> arguments = {"--device", estimator::to_string(job.device)};
  if (job.all_micro_batches) arguments.emplace_back("--all-micro-batches");
  if (!job.attribute_memory) arguments.emplace_back("--no-attribution");
  if (job.cpp_frames) arguments.emplace_back("--cpp-frames");
  if (job.lift_limit) arguments.emplace_back("--lift-limit");
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    if (!job.memory_files[file].empty()) arguments.emplace_back(kMemoryFiles[file].flag);
  }
  if (job.jobs) {
    arguments.emplace_back("--jobs");
    arguments.push_back(std::to_string(*job.jobs));
  }
  return arguments;
}

std::vector<std::string> rank_arguments(const RankJob& job, const RankProgram& program) {
  std::vector<std::string> arguments = {"--plan",
                                        program.plan_file().string(),
                                        "--output-dir",
                                        program.folder().string(),
                                        "--ranks",
                                        fmt::format("{}", fmt::join(job.ranks, ","))};
  const std::vector<std::string> how = job_arguments(job);
  arguments.insert(arguments.end(), how.begin(), how.end());
  return arguments;
}

/// PyTorch's one fused attention for the CPU draws no masks.
void refuse_dropout_on_cpu(const Plan& plan, DeviceKind device) {
  const estimator::Attention attention = plan.training.attention;
  const bool is_fused = attention != estimator::Attention::kUnfused;
  if (device != DeviceKind::kCpu || !is_fused || plan.model.attention_dropout == 0) return;
  throw UserError(
      {.what = "on the device cpu only unfused attention has dropout",
       .where = fmt::format("--device cpu with --attention-dropout {} and --attention-backend {}",
                            plan.model.attention_dropout,
                            estimator::to_string(attention)),
       .help = "use --attention-dropout 0, --attention-backend unfused, or --device virtual"});
}

RankProfile read_profile(const fs::path& folder, int64_t rank) {
  const std::string path = (folder / estimator::profile_file_name(rank)).string();
  try {
    return estimator::read_rank_profile(estimator::read_file(path), path);
  } catch (const UserError& error) {
    throw std::logic_error(
        fmt::format("the rank process left no profile of rank {}\n{}", rank, error.what()));
  }
}

}  // namespace

void write_memory_files(const ForEachMemoryFile<std::string>& paths,
                        const std::vector<int64_t>& ranks,
                        const fs::path& folder) {
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    if (paths[file].empty()) continue;
    for (const int64_t rank : ranks) {
      const fs::path made = folder / memory_file_name(file, rank);
      if (!fs::exists(made)) continue;  // a program that allocated nothing has no peak
      estimator::copy_file_whole(made.string(), path_for_rank(paths[file], rank, ranks.size()));
    }
  }
}

std::string path_for_rank(const std::string& path, int64_t rank, std::size_t ranks) {
  if (ranks == 1) return path;
  const fs::path whole = path;
  const std::string name =
      fmt::format("{}-rank-{:05}{}", whole.stem().string(), rank, whole.extension().string());
  return (whole.parent_path() / name).string();
}

std::vector<RankProfile> run_ranks(const Plan& plan,
                                   const RankJob& job,
                                   const Environment& environment,
                                   const Progress::Display& display) {
  refuse_dropout_on_cpu(plan, job.device);
  const RankProgram program(plan, job.device, environment);
  {
    Progress progress(
        job.what, static_cast<int64_t>(job.ranks.size()), display, Progress::Clock::now());
    program.run(rank_arguments(job, program),
                {.on_output_line = [&](std::string_view) { progress.count_one(); },
                 .on_tick = [&] { progress.update(Progress::Clock::now()); }});
  }

  std::vector<RankProfile> profiles;
  for (const int64_t rank : job.ranks) profiles.push_back(read_profile(program.folder(), rank));
  write_memory_files(job.memory_files, job.ranks, program.folder());
  return profiles;
}

namespace {

/// What a process has the same for all its ranks.
using ProcessSettings = std::array<std::string, 3>;

ProcessSettings settings_of(const Plan& plan) {
  return {plan.cluster.gpu, plan.memory.allocator, plan.memory.cublas_workspace};
}

/// Of the plan with this number, beside the file that lists the work.
fs::path folder_of_plan(const fs::path& work_folder, std::size_t number) {
  return work_folder / std::to_string(number);
}

/// Where the answers to some plans' ranks are gathered.
struct Gathering {
  const std::vector<RanksOfPlan>& plans;
  const RankJob& job;
  const RankStore& store;
  Progress& progress;
  std::vector<RanksAnswer>& answers;
  std::vector<std::size_t> missing;  ///< ranks of each plan that are not done

  /// Takes what a rank has left; `text` is the line that the rank process wrote.
  void take(std::string_view text, const fs::path& work_folder) {
    progress.count_one();
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return;
    const std::size_t number = line.at("plan");
    const fs::path folder = folder_of_plan(work_folder, number);
    const RanksOfPlan& ranks = plans[number];
    const int64_t rank = line.at("rank");
    --missing[number];
    if (line.contains("error")) {
      answers[number].refusal = line.at("error");
      store.keep_refusal(*ranks.plan, rank, answers[number].refusal);
    } else if (!job.store.empty()) {
      const fs::path file = folder / line.at("file").get<std::string>();
      store.keep_profile(*ranks.plan, rank, estimator::read_file(file.string()));
    }
    if (missing[number] > 0 || !answers[number].refusal.empty()) return;
    for (const int64_t each : ranks.ranks) {
      answers[number].profiles.push_back(read_profile(folder, each));
    }
  }
};

/// Runs the ranks of those plans whose numbers are given, which have the same settings.
void run_in_one_process(const std::vector<std::size_t>& numbers,
                        const Environment& environment,
                        Gathering& gathering) {
  const std::vector<RanksOfPlan>& plans = gathering.plans;
  const RankJob& job = gathering.job;
  const RankProgram program(*plans[numbers.front()].plan, job.device, environment);
  std::string work;
  for (const std::size_t i : numbers) {
    const fs::path folder = folder_of_plan(program.folder(), i);
    estimator::make_folder(folder.string());
    estimator::write_file_whole((folder / "plan.json").string(),
                                estimator::to_json(*plans[i].plan).dump());
    work += fmt::format("{} {}\n", i, fmt::join(plans[i].ranks, " "));
  }
  const std::string work_file = (program.folder() / "work").string();
  estimator::write_file_whole(work_file, work);
  std::vector<std::string> arguments = job_arguments(job);
  arguments.insert(arguments.end(), {"--work", work_file});
  program.run(
      arguments,
      {.on_output_line = [&](std::string_view line) { gathering.take(line, program.folder()); },
       .on_tick = [&] { gathering.progress.update(Progress::Clock::now()); }});
  for (const std::size_t i : numbers) {
    const RanksAnswer& answer = gathering.answers[i];
    if (answer.refusal.empty() && answer.profiles.size() < plans[i].ranks.size()) {
      throw std::logic_error("the rank process left out a rank");
    }
  }
}

/// The answers of those plans that were done when it throws are in `answers`.
void run_ranks_of_plans(const std::vector<RanksOfPlan>& plans,
                        const RankJob& job,
                        const Environment& environment,
                        Progress& progress,
                        std::vector<RanksAnswer>& answers) {
  const RankStore store(job, environment);
  answers.resize(plans.size());
  Gathering gathering{plans, job, store, progress, answers, {}};
  std::map<ProcessSettings, std::vector<std::size_t>> numbers;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    gathering.missing.push_back(plans[i].ranks.size());
    refuse_dropout_on_cpu(*plans[i].plan, job.device);
    if (std::optional<RanksAnswer> kept = store.find(plans[i])) {
      answers[i] = std::move(*kept);
      for (std::size_t rank = 0; rank < plans[i].ranks.size(); ++rank) progress.count_one();
    } else {
      numbers[settings_of(*plans[i].plan)].push_back(i);
    }
  }
  for (const auto& [settings, of_one_process] : numbers) {
    run_in_one_process(of_one_process, environment, gathering);
  }
}

}  // namespace

std::vector<RanksAnswer> run_ranks_of_plans(const std::vector<RanksOfPlan>& plans,
                                            const RankJob& job,
                                            const Environment& environment,
                                            Progress& progress) {
  std::vector<RanksAnswer> answers;
  run_ranks_of_plans(plans, job, environment, progress, answers);
  return answers;
}

AnswersSoFar run_ranks_until_interrupted(const std::vector<RanksOfPlan>& plans,
                                         const RankJob& job,
                                         const Environment& environment,
                                         Progress& progress) {
  AnswersSoFar so_far;
  try {
    run_ranks_of_plans(plans, job, environment, progress, so_far.answers);
  } catch (const UserError& error) {
    if (error.exit_code() != estimator::ExitCode::kInterrupted) throw;
    so_far.interrupted = true;
  }
  return so_far;
}

estimator::Calibration run_calibration(DeviceKind device, const Environment& environment) {
  const RankProgram program(device, environment);
  const std::string file = (program.folder() / "calibration.json").string();
  program.run({"--calibrate", file, "--device", estimator::to_string(device)},
              {.on_output_line = [](std::string_view) {}, .on_tick = [] {}});
  try {
    return estimator::read_calibration(estimator::read_file(file), file);
  } catch (const UserError& error) {
    throw std::logic_error(fmt::format("the rank process left no calibration\n{}", error.what()));
  }
}

}  // namespace sim
