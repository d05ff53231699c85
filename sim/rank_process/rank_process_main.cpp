// onerank-rank: the rank process. `onerank` starts it; sim/cli/ranks/rank_process.h says how.
#include "sim/rank_process/rank_process_main.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "estimator/base/document.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/machine.h"
#include "estimator/base/machine_share.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/rank/calibrate.h"
#include "sim/rank/fork_ranks.h"
#include "sim/rank/rank_device.h"
#include "sim/rank_process/verify_arguments.h"
#include "sim/tracking/torch_version.h"

namespace sim {
namespace {

using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::Plan;
using estimator::UserError;

struct Arguments {
  std::string plan_file;
  std::string output_folder;
  std::vector<int64_t> ranks;
  std::string work_file;
  std::string calibration_file;
  std::string device = "virtual";
  RankJobs jobs;
};

/// Whether exactly one of the ways to call it is given in full.
bool is_complete(const Arguments& arguments) {
  const bool has_plan =
      !arguments.plan_file.empty() && !arguments.output_folder.empty() && !arguments.ranks.empty();
  return has_plan + !arguments.work_file.empty() + !arguments.calibration_file.empty() == 1;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  arguments.jobs.at_once = estimator::machine_share().processors;
  CLI::App app("Runs ranks of a resolved plan and writes their profiles. `onerank` starts it.");
  app.add_option("--calibrate",
                 arguments.calibration_file,
                 "measure the device, write the result to this file, and run no rank");
  app.add_option("--plan", arguments.plan_file, "resolved plan");
  app.add_option("--output-dir", arguments.output_folder, "for the profiles");
  app.add_option("--ranks", arguments.ranks, "0,8,16")->delimiter(',');
  app.add_option("--work", arguments.work_file, "ranks of many plans: see rank_process.h");
  app.add_option("--errors", arguments.jobs.errors_file, "for the error that ends it");
  app.add_option("--device", arguments.device, "virtual, cuda or cpu");
  app.add_option("--jobs", arguments.jobs.at_once, "ranks at the same time")
      ->check(CLI::PositiveNumber);
  app.add_flag("--all-micro-batches", arguments.jobs.run.all_micro_batches, "run every one");
  app.add_flag("--lift-limit", arguments.jobs.lift_limit, "GPUs with more memory than they have");
  app.add_flag("!--no-attribution", arguments.jobs.run.attribute_memory, "do not follow memory");
  app.add_flag("--cpp-frames", arguments.jobs.run.take_stacks, "C++ functions of allocations");
  for (std::size_t file = 0; file < sim::kMemoryFiles.size(); ++file) {
    app.add_flag(sim::kMemoryFiles[file].flag,
                 arguments.jobs.run.memory_files[file],
                 sim::kMemoryFiles[file].help);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    throw UserError({.what = error.what(), .where = "onerank-rank", .help = "see --help"});
  }
  estimator::FieldReader reader("onerank-rank");
  reader.read(estimator::Json(arguments.device), arguments.jobs.run.device, "--device");
  reader.throw_if_any();
  // Ranks that share a GPU would spoil each other's peaks and times.
  if (arguments.jobs.run.device == DeviceKind::kCuda) arguments.jobs.at_once = 1;
  if (!is_complete(arguments)) {
    throw UserError(
        {.what = "--plan, --output-dir and --ranks, or --work, or --calibrate, are needed",
         .where = "onerank-rank",
         .help = "see --help"});
  }
  return arguments;
}

void run_calibration(const Arguments& arguments) {
  const DeviceKind device = arguments.jobs.run.device;
  check_torch_version();
  load_device_library(device);
  start_device(device, /*lift_limit=*/false);
  estimator::write_file_whole(arguments.calibration_file,
                              estimator::document_text(calibrate(device)));
}

void check_ranks(const Plan& plan, const std::vector<int64_t>& ranks) {
  for (const int64_t rank : ranks) {
    if (rank >= 0 && rank < plan.world_size()) continue;
    throw UserError({.what = "there is no such rank",
                     .where = "rank " + std::to_string(rank) + ", world size " +
                              std::to_string(plan.world_size()),
                     .help = "use a rank from 0 to " + std::to_string(plan.world_size() - 1)});
  }
}

Plan read_resolved_plan(const std::string& file) {
  const std::string text = estimator::read_file(file);
  return estimator::resolve_plan(estimator::parse_json(text, file), {.origin = file});
}

void print_line(const estimator::Json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

void run_plan(Arguments arguments) {
  const Plan plan = read_resolved_plan(arguments.plan_file);
  check_ranks(plan, arguments.ranks);
  for (const int64_t rank : arguments.ranks) {
    arguments.jobs.works.push_back({&plan, rank, arguments.output_folder});
  }
  check_torch_version();
  load_device_library(arguments.jobs.run.device);
  fork_ranks(arguments.jobs, {.finished = [](const RankWork& work, const std::string& file) {
               print_line({{"rank", work.rank}, {"file", file}});
             }});
}

/// What is said of a rank of many plans; its folder is named after the plan's number.
estimator::Json line_of(const RankWork& work) {
  const std::string number = std::filesystem::path(work.output_folder).filename().string();
  return {{"plan", std::stoll(number)}, {"rank", work.rank}};
}

/// A rank that cannot run leaves its error, and the others go on.
void run_work(Arguments arguments) {
  std::istringstream lines(estimator::read_file(arguments.work_file));
  const std::filesystem::path work_folder =
      std::filesystem::path(arguments.work_file).parent_path();
  std::deque<Plan> plans;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number;
    words >> number;
    const std::string folder = (work_folder / number).string();
    const Plan& plan = plans.emplace_back(read_resolved_plan(folder + "/plan.json"));
    for (int64_t rank = 0; words >> rank;) {
      check_ranks(plan, {rank});
      arguments.jobs.works.push_back({&plan, rank, folder});
    }
  }
  check_torch_version();
  load_device_library(arguments.jobs.run.device);
  const auto failed = [](const RankWork& work, const UserError& error) {
    estimator::Json line = line_of(work);
    line["error"] = estimator::to_text(error.problems());
    print_line(line);
  };
  const auto finished = [](const RankWork& work, const std::string& file) {
    estimator::Json line = line_of(work);
    line["file"] = file;
    print_line(line);
  };
  fork_ranks(arguments.jobs, {.finished = finished, .failed = failed});
}

ExitCode run(const Arguments& arguments) {
  if (!arguments.calibration_file.empty()) {
    run_calibration(arguments);
  } else if (!arguments.work_file.empty()) {
    run_work(arguments);
  } else {
    run_plan(arguments);
  }
  return ExitCode::kDone;
}

ExitCode verify(VerifyArguments arguments, const WorldHooks& hooks) {
  const Plan plan = read_resolved_plan(arguments.plan_file);
  check_torch_version();
  arguments.job.hooks = hooks;
  return verify_ranks(plan, arguments.job);
}

/// The file that --errors names, also when the other arguments cannot be read; or "".
std::string errors_file_in(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--errors") return argv[i + 1];
  }
  return "";
}

int exit_code_of(int argc, char** argv, const WorldHooks& hooks) {
  estimator::take_usual_signals();
  // What a thread of Gloo's throws ends the process by SIGABRT, which its parent tells.
  try {
    const bool is_verify = argc > 1 && std::string(argv[1]) == "verify";
    const ExitCode exit_code = is_verify ? verify(parse_verify_arguments(argc - 1, argv + 1), hooks)
                                         : run(parse(argc, argv));
    return static_cast<int>(exit_code);
  } catch (...) {
    return static_cast<int>(
        estimator::tell_failure(std::current_exception(), errors_file_in(argc, argv)));
  }
}

}  // namespace

void rank_process_main(int argc, char** argv, const WorldHooks& hooks) {
  const int exit_code = exit_code_of(argc, argv, hooks);
  std::fflush(nullptr);
  _exit(exit_code);
}

}  // namespace sim
