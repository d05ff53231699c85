#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/base/range.h"
#include "estimator/base/text.h"
#include "estimator/base/units.h"
#include "estimator/cluster/program_estimate.h"
#include "estimator/cluster/program_ranks.h"
#include "estimator/cluster/program_roofline.h"
#include "estimator/hardware/hardware.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/input/device_choice.h"
#include "sim/cli/input/program_flags.h"
#include "sim/cli/input/rank_options.h"
#include "sim/cli/input/verdict_gate.h"
#include "sim/cli/page/program_page.h"
#include "sim/cli/process/exec_process.h"
#include "sim/cli/process/output.h"
#include "sim/cli/process/program_torch.h"
#include "sim/cli/process/side_by_side.h"
#include "sim/cli/process/srun.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/process/terminal.h"
#include "sim/cli/process/torch_stubs.h"
#include "sim/cli/process/virtual_gpu_setup.h"
#include "sim/cli/report/estimate_report.h"
#include "sim/cli/report/program_report.h"
#include "sim/cli/report/program_time_text.h"
#include "sim/cli/report/program_timeline_text.h"
#include "sim/cli/report/roofline_report.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::RankProfile;
using estimator::UserError;

constexpr int64_t kLongest = 1'000'000'000;

struct ExecOptions {
  std::string gpu = "h100-sxm";
  std::string world_size;
  std::string rank;
  std::string ranks;
  std::string jobs;
  std::string gpus_per_node = "8";
  std::string steps = "0";
  std::string timeout = "600";
  std::string events = "immediate";
  std::string device = "virtual";
  std::string memory;
  bool no_memory_limit = false;
  std::string output;
  bool accept_invented_counts = false;
  std::vector<std::string> assumed;
  std::string expert_balance;
  bool no_recording = false;
  ForEachMemoryFile<std::string> memory_files;
  std::string trace;
  HtmlFlag html;
  std::string estimate;
  bool timeline = false;
  bool roofline = false;
  bool json = false;
  bool verbose = false;
  PlanFlags plan_flags;
  ProgramFlags program_flags;
  MeasuredStepFlag measured_step;
  VerdictGate gate;
  std::vector<std::string> program;
};

int64_t number_in(const std::string& text, const std::string& source, int64_t low, int64_t high) {
  const int64_t value = parse_whole_number(text, source);
  estimator::require_in_range(value, {static_cast<double>(low), static_cast<double>(high)}, source);
  return value;
}

/// A flag, or else a variable, or else `otherwise`.
int64_t flag_or_variable(const std::string& flag,
                         const char* flag_name,
                         const char* variable,
                         const Environment& environment,
                         int64_t low,
                         int64_t otherwise) {
  if (!flag.empty()) return number_in(flag, flag_name, low, estimator::kMostRanks);
  if (const auto value = find_variable(environment, variable)) {
    return number_in(*value, variable, low, estimator::kMostRanks);
  }
  return otherwise;
}

/// `--ranks auto`: the ranks follow from what those before did.
bool are_found(const ExecOptions& options) { return options.ranks == "auto"; }

int64_t rank_in(const std::string& text, const char* source, int64_t world_size) {
  const int64_t rank = parse_whole_number(text, source);
  if (world_size == 1 && rank > 0) {
    throw UserError({.what = "the world has one rank",
                     .where = fmt::format("{} = {}", source, rank),
                     .help = "give --world-size N"});
  }
  return number_in(text, source, 0, world_size - 1);
}

std::vector<int64_t> ranks_of(const ExecOptions& options,
                              int64_t world_size,
                              const Environment& environment) {
  if (!options.ranks.empty() && !options.rank.empty()) {
    throw UserError({.what = "--rank and --ranks say the same thing twice",
                     .where = fmt::format("--rank {}", options.rank),
                     .help = "give one of them"});
  }
  if (are_found(options)) return {};
  if (!options.ranks.empty()) {
    std::set<int64_t> ranks;
    for (const std::string& rank : estimator::split(options.ranks, ',')) {
      ranks.insert(rank_in(rank, "--ranks", world_size));
    }
    return {ranks.begin(), ranks.end()};
  }
  const int64_t rank = flag_or_variable(options.rank, "--rank", kRankVariable, environment, 0, 0);
  return {rank_in(std::to_string(rank), "--rank", world_size)};
}

/// They say what the virtual GPU plays or invents.
constexpr const char* kVirtualFlags[] = {"--gpu",
                                         "--events",
                                         "--memory",
                                         "--no-memory-limit",
                                         "--accept-invented-counts",
                                         "--assume",
                                         "--expert-balance"};

DeviceKind device_of(const ExecOptions& options,
                     const CLI::App& app,
                     const Environment& environment) {
  const DeviceKind device = choose_device(options.device);
  if (device == DeviceKind::kCpu) {
    throw UserError({.what = "`onerank exec` runs a program only on a GPU, real or virtual",
                     .where = "--device cpu",
                     .help = "use --device virtual, or cuda"});
  }
  if (device == DeviceKind::kVirtual) return device;
  for (const char* flag : kVirtualFlags) {
    if (app.count(flag) == 0) continue;
    throw UserError({.what = "the flag is for the virtual GPU only",
                     .where = fmt::format("{} with --device cuda", flag),
                     .help = fmt::format("leave out {}, or use --device virtual", flag)});
  }
  require_driver("there is no GPU to run the program on",
                 "use --device virtual, or run it on a machine with a GPU",
                 environment);
  return device;
}

void check_events(const std::string& mode) {
  const std::vector<std::string> modes(std::begin(kEventModes), std::end(kEventModes));
  if (std::find(modes.begin(), modes.end(), mode) != modes.end()) return;
  throw UserError({.what = "unknown mode of events",
                   .where = fmt::format("--events {}", mode),
                   .help = estimator::suggestion(mode, modes)});
}

/// "loss=2.5"
AssumedNumber assumed_number(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::vector<std::string> names(std::begin(kAssumedNames), std::end(kAssumedNames));
  if (equals == text.npos || std::find(names.begin(), names.end(), name) == names.end()) {
    throw UserError({.what = "no value with this name can be assumed",
                     .where = fmt::format("--assume {}", text),
                     .help = fmt::format("use NAME=VALUE with one of {}", fmt::join(names, ", "))});
  }
  return {.name = name,
          .value = parse_real_number(text.substr(equals + 1), fmt::format("--assume {}", name))};
}

/// "balanced" or "imbalance:1.5"; empty for "".
std::optional<double> fullest_expert(const std::string& text) {
  constexpr std::string_view kImbalance = "imbalance:";
  if (text.empty()) return std::nullopt;
  if (text == "balanced") return 1.0;
  if (text.starts_with(kImbalance)) {
    const double factor = parse_real_number(text.substr(kImbalance.size()), "--expert-balance");
    if (factor >= 1) return factor;
  }
  throw UserError(
      {.what = "no such balance of experts",
       .where = fmt::format("--expert-balance {}", text),
       .help =
           "use balanced, or imbalance:F: the first expert gets F (at least 1) times the mean"});
}

AssumedValues assumed_values(const ExecOptions& options) {
  AssumedValues values{.fullest_expert = fullest_expert(options.expert_balance)};
  for (const std::string& text : options.assumed) values.numbers.push_back(assumed_number(text));
  return values;
}

/// 0 if none is given.
int64_t memory_of(const ExecOptions& options) {
  constexpr double kMostGib = 16 << 10;
  if (options.memory.empty()) return 0;
  const double gib = parse_real_number(options.memory, "--memory");
  if (gib > 0 && gib <= kMostGib) return static_cast<int64_t>(gib * estimator::kGiB);
  throw UserError({.what = "no GPU has so much memory",
                   .where = "--memory " + options.memory,
                   .help = fmt::format("use GiB, more than 0 and at most {}", kMostGib)});
}

/// A virtual GPU without room for what a process holds from its start could not be made.
void refuse_memory_below_context(const ExecJob& job, const ExecOptions& options) {
  const bool has_limit = job.memory_bytes > 0 && !job.lift_memory_limit;
  if (job.device != DeviceKind::kVirtual || !has_limit) return;
  const int64_t outside = estimator::program_outside_bytes(*job.gpu);
  if (job.memory_bytes > outside) return;
  throw UserError({.what = fmt::format("CUDA's context and libraries alone take {}",
                                       estimator::format_gib(outside)),
                   .where = "--memory " + options.memory,
                   .help = "give more than that"});
}

/// In place of srun its program is run, as the task of the rank.
void take_srun(ExecJob& job) {
  const auto srun = parse_srun(job.command);
  if (!srun) return;
  job.command = srun->program;
  if (!job.world_is_given && srun->tasks) {
    job.world_size =
        number_in(std::to_string(*srun->tasks), "srun --ntasks", 1, estimator::kMostRanks);
    job.world_is_given = true;
  }
  job.slurm_tasks = srun->tasks.value_or(job.world_size);
  check_slurm_job({.world_size = job.world_size, .tasks = job.slurm_tasks});
}

ExecJob job_of(const ExecOptions& options, const CLI::App& app, const Environment& environment) {
  check_events(options.events);
  ExecJob job;
  job.device = device_of(options, app, environment);
  job.command = options.program;
  if (job.device == DeviceKind::kVirtual) job.events = options.events;
  job.gpu = estimator::find_gpu(options.gpu);
  if (job.gpu == nullptr) {
    throw UserError({.what = "unknown GPU",
                     .where = fmt::format("--gpu {}", options.gpu),
                     .help = estimator::gpu_help(options.gpu)});
  }
  job.world_size =
      flag_or_variable(options.world_size, "--world-size", kWorldSizeVariable, environment, 1, 1);
  job.world_is_given =
      !options.world_size.empty() || find_variable(environment, kWorldSizeVariable).has_value();
  take_srun(job);
  job.gpus_per_node =
      number_in(options.gpus_per_node, "--gpus-per-node", 1, estimator::kMostGpusOfNode);
  job.node_is_given = app.count("--gpus-per-node") > 0;
  job.steps = number_in(options.steps, "--steps", 0, kLongest);
  if (options.no_recording && app.count("--steps") > 0) {
    throw UserError({.what = "steps are counted by what is recorded",
                     .where = fmt::format("--steps {} with --no-recording", job.steps),
                     .help = "leave one of them out"});
  }
  job.timeout_seconds = number_in(options.timeout, "--timeout", 0, kLongest);
  job.memory_bytes = memory_of(options);
  job.lift_memory_limit = options.no_memory_limit;
  refuse_memory_below_context(job, options);
  job.accept_invented_counts = options.accept_invented_counts;
  job.assumed = assumed_values(options);
  job.record = !options.no_recording;
  job.memory_files = options.memory_files;
  job.output_to_error = options.json;
  return job;
}

/// The profile, or a list of several.
estimator::Json document_of(const std::vector<RankProfile>& profiles) {
  return profiles.size() == 1 ? estimator::to_json(profiles.front()) : estimator::to_json(profiles);
}

/// The estimate of the ranks together; empty if one of them has no verdict.
std::optional<estimator::ProgramEstimate> estimate_of(const std::vector<RankProfile>& profiles,
                                                      const estimator::ProgramRun& run) {
  for (const RankProfile& profile : profiles) {
    if (!profile.program->recorded || estimator::lacks_verdict(profile)) return std::nullopt;
  }
  return estimator::estimate_program(profiles, nullptr, run);
}

/// The step time of the ranks together and what follows from it, or why there is none.
std::string step_time_text(const std::optional<estimator::ProgramEstimate>& estimate,
                           const std::vector<RankProfile>& profiles) {
  if (!estimate) return "";
  if (estimate->time) return program_time_text(*estimate);
  return "\nno step time: " + *estimator::lacks_time(profiles) + "\n";
}

/// JSON is printed of the profiles.
void refuse_unanswered(const ExecOptions& options) {
  if (!options.json || !options.estimate.empty()) return;
  std::vector<std::string> flags = options.program_flags.given();
  if (options.measured_step.is_given()) flags.emplace_back("--measured-step");
  if (const std::string flag = options.plan_flags.given_beyond({}); !flag.empty()) {
    flags.push_back(flag);
  }
  if (flags.empty()) return;
  throw UserError({.what = "the profiles, which --json prints, do not have the answer",
                   .where = flags.front() + " with --json",
                   .help = "give --estimate FILE too, which has it, or leave out --json"});
}

/// The worst of all ranks. Throws UserError where all that have a verdict pass, and some lack one.
ExitCode verdict_on(const std::vector<RankProfile>& profiles, const VerdictGate& gate) {
  ExitCode exit_code = ExitCode::kDone;
  std::vector<estimator::Problem> problems;
  for (const RankProfile& profile : profiles) {
    if (auto problem = estimator::lacks_verdict(profile)) {
      problems.push_back(std::move(*problem));
    } else {
      exit_code = std::max(exit_code, gate.exit_code(verdict_of_program(profile)));
    }
  }
  if (exit_code != ExitCode::kDone || problems.empty()) return exit_code;
  throw UserError(std::move(problems), ExitCode::kMachineLacks);
}

/// How full the fullest of the ranks that have a verdict is; "" unless --health asks for it.
std::string fullest_text(const std::vector<RankProfile>& profiles, const VerdictGate& gate) {
  if (!gate.asks_for_health()) return "";
  std::optional<estimator::Verdict> fullest;
  for (const RankProfile& profile : profiles) {
    if (estimator::lacks_verdict(profile)) continue;
    estimator::Verdict verdict = verdict_of_program(profile);
    if (!fullest || verdict.peak_bytes > fullest->peak_bytes) fullest = std::move(verdict);
  }
  return fullest ? health_text(*fullest, gate.health(*fullest)) : "";
}

int64_t ranks_at_once(const ExecOptions& options, DeviceKind device) {
  constexpr int64_t kMostAtOnce = 1024;
  if (options.jobs.empty()) return device == DeviceKind::kVirtual ? 0 : 1;
  const int64_t jobs = number_in(options.jobs, "--jobs", 1, kMostAtOnce);
  if (jobs == 1 || device == DeviceKind::kVirtual) return jobs;
  throw UserError({.what = "a real GPU runs one rank at a time",
                   .where = fmt::format("--jobs {} with --device cuda", jobs),
                   .help = "leave out --jobs"});
}

/// One rank alone shows its output while it runs; of several, each shows it when it has ended.
std::vector<RankProfile> run_ranks_now(const ExecOptions& options,
                                       const ExecJob& job,
                                       const std::vector<int64_t>& ranks,
                                       const Environment& environment,
                                       const Interrupts& interrupts) {
  const auto show = [&](const RankProfile& profile) {
    if (!options.json) write_to_standard_output("\n" + program_text(profile, options.verbose));
  };
  if (job.peers_folder.empty()) {
    std::vector<RankProfile> profiles = {exec_rank(job, ranks.front(), environment, interrupts)};
    show(profiles.front());
    return profiles;
  }
  const auto show_with_output = [&](const RankProfile& profile, const std::string& output) {
    if (job.output_to_error) {
      write_to_standard_error(output);
    } else {
      write_to_standard_output(output);
    }
    show(profile);
  };
  return exec_side_by_side(job,
                           ranks,
                           {.at_once = ranks_at_once(options, job.device),
                            .display = standard_error_display(),
                            .on_rank = show_with_output},
                           environment,
                           interrupts);
}

/// "rank-00000.json"
bool is_profile_name(const std::string& name) {
  return name.starts_with("rank-") && name.ends_with(".json");
}

/// Refuses before the program runs what could not be written after it.
void check_outputs(const ExecOptions& options, const std::vector<int64_t>& ranks) {
  check_writable_folder(options.output, "--output");
  if (fs::is_directory(options.output)) {
    for (const int64_t rank : ranks) {
      check_writable(fs::path(options.output) / estimator::profile_file_name(rank), "--output");
    }
    for (const auto& entry : fs::directory_iterator(options.output)) {  // --ranks auto adds ranks
      if (is_profile_name(entry.path().filename().string())) {
        check_writable(entry.path(), "--output");
      }
    }
  }
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    if (options.memory_files[file].empty()) continue;
    check_writable(options.memory_files[file], kMemoryFiles[file].flag);
  }
  check_writable(options.trace, "--trace");
  check_writable_document(options.estimate, "--estimate");
  options.html.check();
}

std::string new_run() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// The folders in which a job's ranks meet and leave their files. What is not wanted afterwards is
/// removed with it.
class JobFolders {
 public:
  JobFolders(const ExecOptions& options, bool has_several_ranks, ExecJob& job) {
    job.memory_folder = memory_.path();
    if (has_several_ranks) {
      job.peers_folder = peers_.emplace().path();
      job.run = new_run();
    }
    if (options.output.empty()) {
      job.output_folder = profiles_.emplace().path();
    } else {
      job.output_folder = fs::absolute(options.output);
      estimator::make_folder(job.output_folder.string());
    }
  }

 private:
  const TemporaryFolder memory_;
  std::optional<TemporaryFolder> peers_;
  std::optional<TemporaryFolder> profiles_;
};

/// The profiles of the ranks, or of those that are found, by ascending rank.
std::vector<RankProfile> run_all(const ExecOptions& options,
                                 const ExecJob& job,
                                 std::vector<int64_t> ranks,
                                 const Environment& environment,
                                 const Interrupts& interrupts) {
  constexpr int64_t kMostFound = 64;
  std::vector<RankProfile> profiles;
  const auto next = [&] {
    const bool is_of_launcher = !job.world_is_given && !profiles.empty();
    return estimator::ranks_to_run_next(
        profiles, is_of_launcher ? profiles.front().world_size : job.world_size, kMostFound);
  };
  if (are_found(options)) ranks = next();
  while (!ranks.empty()) {
    for (RankProfile& profile : run_ranks_now(options, job, ranks, environment, interrupts)) {
      profiles.push_back(std::move(profile));
    }
    ranks = are_found(options) ? next() : std::vector<int64_t>();
  }
  std::sort(profiles.begin(), profiles.end(), [](const RankProfile& a, const RankProfile& b) {
    return a.rank < b.rank;
  });
  return profiles;
}

/// The step as it is replayed, if something of it is wanted; it is written and printed as asked
/// for.
std::optional<estimator::ProgramReplay> show_step(
    const ExecOptions& options,
    const std::vector<RankProfile>& profiles,
    const std::optional<estimator::ProgramEstimate>& estimate,
    const estimator::ProgramRun& run) {
  const bool has_time = estimate && estimate->time;
  const bool shows_step = options.timeline || options.roofline || options.html.is_given();
  if (options.trace.empty() && !(has_time && shows_step)) return std::nullopt;
  estimator::ProgramReplay replay = estimator::replay_program(profiles, nullptr, run);
  if (!options.trace.empty()) write_program_trace(options.trace, replay);
  if (options.timeline) {
    write_to_standard_output(program_timeline_text(replay, output_columns()));
  }
  if (options.roofline) {
    write_to_standard_output("\n" + roofline_text(estimator::program_roofline(replay)));
  }
  return replay;
}

/// Writes and prints what the profiles say.
void report_profiles(const ExecOptions& options,
                     const std::vector<RankProfile>& profiles,
                     const estimator::ProgramRun& run,
                     const std::optional<DetailFiles>& detail) {
  const auto estimate = estimate_of(profiles, run);
  if (!options.json) write_to_standard_output(step_time_text(estimate, profiles));
  if (estimate && !options.estimate.empty()) {
    estimator::write_file_whole(options.estimate, estimator::document_text(*estimate));
  }
  const auto replay = show_step(options, profiles, estimate, run);
  if (detail) {
    const int64_t rank = detailed_rank(profiles, estimate).rank;
    options.html.write(program_page(profiles,
                                    {.command = "onerank exec",
                                     .estimate = estimate,
                                     .replay = replay ? &*replay : nullptr,
                                     .detail = detail->read(rank, profiles.size())}));
  }
  write_to_standard_output(options.json ? estimator::document_text(document_of(profiles))
                                        : fullest_text(profiles, options.gate));
}

ExitCode run_exec(const ExecOptions& options, const CLI::App& app, const Environment& environment) {
  ExecJob job = job_of(options, app, environment);
  estimator::ProgramRun run = options.program_flags.run(options.plan_flags);
  run.measured_step_seconds = options.measured_step.seconds();
  refuse_unanswered(options);
  std::vector<int64_t> ranks = ranks_of(options, job.world_size, environment);
  options.gate.check();
  static_cast<void>(ranks_at_once(options, job.device));
  check_outputs(options, ranks);
  std::optional<DetailFiles> detail;
  if (options.html.is_given()) {
    detail.emplace(job.memory_files);
    job.memory_files = detail->paths();
  }
  check_command(job.command, environment);
  const Interrupts interrupts;  // first: nothing is left behind when a signal acts
  const auto torch = find_program_torch(job.command, environment, interrupts);
  job.stubs = torch ? stubs_for(*torch, environment, interrupts) : parts_folder();
  const JobFolders folders(options, are_found(options) || ranks.size() > 1, job);
  const std::vector<RankProfile> profiles =
      run_all(options, job, std::move(ranks), environment, interrupts);
  std::vector<int64_t> executed;
  executed.reserve(profiles.size());
  for (const RankProfile& profile : profiles) executed.push_back(profile.rank);
  write_memory_files(job.memory_files, executed, job.memory_folder);
  report_profiles(options, profiles, run, detail);
  return verdict_on(profiles, options.gate);
}

void add_execution_flags(CLI::App& app, ExecOptions& options) {
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    return app.add_option(name, value, help)->type_name(type)->group("Execution");
  };
  add("--gpu", options.gpu, "the GPU to simulate (see `onerank list gpus`)", "NAME")
      ->capture_default_str();
  add("--world-size,--gpus,--num-gpus",
      options.world_size,
      "ranks of the world (or WORLD_SIZE; default 1)",
      "N");
  add("--rank", options.rank, "the rank to run (or RANK; default 0)", "R");
  add("--ranks",
      options.ranks,
      "several ranks, side by side: 0,7,63; auto: those that differ, and that wait for each other",
      "R,R");
  add("--jobs",
      options.jobs,
      "ranks that run at the same time (default: as many as processors and memory allow)",
      "N");
  add("--gpus-per-node", options.gpus_per_node, "LOCAL_RANK is the rank modulo this", "N")
      ->capture_default_str();
  add("--steps", options.steps, "end the program after K optimizer steps (0: let it end)", "K")
      ->capture_default_str();
  add("--timeout", options.timeout, "end the program after this many seconds (0: never)", "SECONDS")
      ->capture_default_str();
  add("--events",
      options.events,
      "when an event counts as done: once it is recorded (immediate), or when the host has waited "
      "for it (ordered)",
      "NAME")
      ->capture_default_str();
  add("--device",
      options.device,
      "virtual, or cuda: this machine's GPU, where only NCCL is a stub",
      "NAME")
      ->capture_default_str();
  CLI::Option* memory =
      add("--memory",
          options.memory,
          "memory of each GPU, for a card, a slice or a partition that differs from --gpu",
          "GIB");
  app.add_flag(
         "--no-memory-limit",
         options.no_memory_limit,
         "simulate a GPU with 16 TiB, to see how much memory a program needs that does not fit")
      ->excludes(memory)
      ->group("Execution");
  app.add_flag("--accept-invented-counts",
               options.accept_invented_counts,
               "give zeros when the program reads counts that kernels would have computed, "
               "instead of ending it")
      ->group("Execution");
  app.add_option("--assume",
                 options.assumed,
                 "assume a value that only a kernel would compute: loss, grad-norm or found-inf")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->group("Execution");
  add("--expert-balance",
      options.expert_balance,
      "tokens of each expert: balanced, or imbalance:F (the first expert gets F times the mean)",
      "POLICY");
  add_memory_files_to(app, options.memory_files);
  app.add_flag(
         "--no-recording",
         options.no_recording,
         "run the program with the stubs only, without recording, to see what recording costs")
      ->group("");  // not in the help
}

void add_output_flags(CLI::App& app, ExecOptions& options) {
  app.add_option("--output", options.output, "write the rank profiles rank-*.json there")
      ->type_name("DIR")
      ->group("Output");
  app.add_option("--trace", options.trace, "write the step as a Chrome trace, for Perfetto")
      ->type_name("FILE")
      ->group("Output");
  options.html.add_to(app);
  app.add_option("--estimate",
                 options.estimate,
                 "write memory, time and cost as JSON, as `onerank estimate --profiles` prints it")
      ->type_name("FILE")
      ->group("Output");
  CLI::Option* json = app.add_flag("--json",
                                   options.json,
                                   "print the profile as JSON; the program's output goes to "
                                   "standard error");
  json->group("Output");
  app.add_flag("--verbose", options.verbose, "list each value that was assumed")
      ->excludes(json)
      ->group("Output");
  app.add_flag("--timeline", options.timeline, "draw the step: a line for each stream")
      ->excludes(json)
      ->group("Output");
  app.add_flag("--roofline", options.roofline, "print what bounds the step, as `onerank roofline`")
      ->excludes(json)
      ->group("Output");
}

}  // namespace

Command add_exec_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "exec", "run your PyTorch program as one rank of any world, without a GPU");
  const auto options = std::make_shared<ExecOptions>();
  add_execution_flags(*app, *options);
  add_output_flags(*app, *options);
  options->plan_flags.add_keys_to(*app, keys_of_programs());
  options->program_flags.add_to(*app);
  options->measured_step.add_to(*app);
  options->gate.add_to(*app);
  app->add_option("PROGRAM",
                  options->program,
                  "after `--`: the program and its arguments; one rank alone reads standard input, "
                  "unless it is a terminal")
      ->required()
      ->expected(-1);
  return {app, [options, app](const Environment& environment) {
            return run_exec(*options, *app, environment);
          }};
}

}  // namespace sim
