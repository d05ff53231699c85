#include "sim/cli/process/exec_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <regex>
#include <set>

#include "estimator/base/document.h"
#include "estimator/base/errors.h"
#include "estimator/base/files.h"
#include "estimator/cluster/program_estimate.h"
#include "sim/cli/process/descendants.h"
#include "sim/cli/process/program_processes.h"
#include "sim/cli/process/program_torch.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/process/virtual_gpu_setup.h"
#include "sim/exec/peer_messages.h"
#include "sim/exec/settings.h"
#include "sim/virtual_gpu/spec.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::RankProfile;
using estimator::UserError;
using Clock = std::chrono::steady_clock;

/// More than any rank needs: 16 TiB.
constexpr int64_t kNoLimitBytes = int64_t{1} << 44;
/// For a program that was told to end to do so.
constexpr std::chrono::seconds kEndingTime{60};
constexpr const char* kHooks = "libonerank_exec_hooks.so";
constexpr const char* kRecorder = "libonerank_exec_recorder.so";

fs::path process_folder(const fs::path& scratch) { return scratch / "processes"; }

std::string allocator_setting(const Environment& environment) {
  const auto setting = find_variable(environment, kAllocatorVariable);
  return setting ? *setting : find_variable(environment, kOldAllocatorVariable).value_or("");
}

ForEachMemoryFile<bool> wanted_files(const ExecJob& job) {
  ForEachMemoryFile<bool> wanted{};
  for (std::size_t file = 0; file < wanted.size(); ++file) {
    wanted[file] = !job.memory_files[file].empty();
  }
  return wanted;
}

int64_t memory_of(const ExecJob& job) {
  return job.memory_bytes > 0 ? job.memory_bytes : job.gpu->memory_bytes;
}

/// What a real GPU is, the program's process tells.
estimator::DeviceRecord device_of(const ExecJob& job, const Environment& environment) {
  estimator::DeviceRecord device{.kind = job.device, .allocator = allocator_setting(environment)};
  if (job.device != DeviceKind::kVirtual) return device;
  device.gpu = job.gpu->id;
  device.name = job.gpu->cuda_name;
  device.total_bytes = memory_of(job);
  return device;
}

ExecSettings settings_for(const ExecJob& job, int64_t rank, const Environment& environment) {
  return {.command = job.command,
          .rank = rank,
          .world_size = job.world_size,
          .gpus_per_node = job.gpus_per_node,
          .steps = job.steps,
          .device = device_of(job, environment),
          .events = job.events,
          .limit_lifted = job.lift_memory_limit,
          .accept_invented_counts = job.accept_invented_counts,
          .assumed = job.assumed,
          .memory_files = wanted_files(job),
          .record = job.record,
          .version = ONERANK_VERSION};
}

/// Programs that start a rank for each GPU that they see start as many as the world has.
int64_t visible_gpus(const ExecJob& job) {
  if (job.node_is_given || !job.world_is_given || job.world_size == 1) return job.gpus_per_node;
  return std::min(job.gpus_per_node, job.world_size);
}

void play_virtual_gpu(const ExecJob& job, Environment& environment) {
  environment[virtual_gpu::kEnvironmentVariable] =
      virtual_gpu_setting(*job.gpu,
                          {.device_count = static_cast<int>(visible_gpus(job)),
                           .memory_bytes = job.lift_memory_limit ? kNoLimitBytes : memory_of(job),
                           .outside_bytes = estimator::program_outside_bytes(*job.gpu),
                           .ordered_events = job.events == kOrderedEvents});
  // Triton looks for the driver on disk, to link its launchers with it.
  environment["TRITON_LIBCUDA_PATH"] = (job.stubs / "virtual_gpu" / "lib").string();
}

/// Kernels that are compiled at run time are nothing here: no cache may keep them.
void keep_kernel_caches_away(const fs::path& folder, Environment& environment) {
  environment["USE_PYTORCH_KERNEL_CACHE"] = std::string("0");
  environment["TRITON_CACHE_DIR"] = (folder / "triton").string();
  environment["TORCHINDUCTOR_CACHE_DIR"] = (folder / "inductor").string();
}

/// Bytes that are no UTF-8 become U+FFFD: the program itself is given them as they are.
std::string settings_text(const ExecSettings& settings) {
  return estimator::to_json(settings).dump(
      -1, ' ', false, estimator::Json::error_handler_t::replace);
}

/// Of several ranks none could have all of it.
bool has_input(const ExecJob& job) { return job.peers_folder.empty(); }

SubprocessCommand command_for(const ExecJob& job,
                              int64_t rank,
                              const std::string& preload,
                              const fs::path& scratch,
                              const Environment& outer) {
  const fs::path folder = job.stubs / "exec";
  Environment environment = launcher_environment(job, rank, outer);
  put_first(preload, kPreloadVariable, environment);
  environment[kExecRecorderVariable] = (folder / kRecorder).string();
  if (!job.peers_folder.empty()) environment[kPeersVariable] = job.peers_folder.string();
  environment[kExecWantedRankVariable] = std::to_string(rank);
  environment[kExecFolderVariable] = process_folder(scratch).string();
  environment[virtual_gpu::kRefusalsVariable] =
      (process_folder(scratch) / kRefusedFunctions).string();
  if (job.timeout_seconds > 0) {
    const auto deadline =
        std::chrono::system_clock::now() + std::chrono::seconds(job.timeout_seconds);
    environment[kExecDeadlineVariable] =
        std::to_string(std::chrono::system_clock::to_time_t(deadline));
  }
  environment[kExecSettingsVariable] = settings_text(settings_for(job, rank, outer));
  if (job.device == DeviceKind::kVirtual) {
    play_virtual_gpu(job, environment);
    keep_kernel_caches_away(scratch, environment);
  }
  return {.program = job.command.front(),
          .arguments = {job.command.begin() + 1, job.command.end()},
          .environment = std::move(environment),
          .shares_output = true,
          .output_to_error = job.output_to_error,
          .shares_input = has_input(job)};
}

/// Ends a program that takes too long, or whose rank does not end though its profile is written.
/// Other processes' profiles end nothing.
class Patience {
 public:
  Patience(const ExecJob& job, const WantedRank& wanted, ProgramProcesses& processes)
      : timeout_(job.timeout_seconds),
        wanted_(wanted),
        processes_(processes),
        start_(Clock::now()) {}

  /// True when the program is to be killed.
  bool is_over() {
    const auto now = Clock::now();
    processes_.look();
    for (const ProgramProcess* rank : candidates(processes_.all(), wanted_)) {
      if (now - rank->seen > kEndingTime && is_running(rank->id)) return true;
    }
    timed_out_ = timeout_.count() > 0 && now - start_ > timeout_;
    return timed_out_;
  }
  bool timed_out() const { return timed_out_; }

 private:
  std::chrono::seconds timeout_;
  WantedRank wanted_;
  ProgramProcesses& processes_;
  Clock::time_point start_;
  bool timed_out_ = false;
};

std::string shown(const std::vector<std::string>& command) {
  return fmt::format("{}", fmt::join(command, " "));
}

[[noreturn]] void fail(const ExecJob& job, std::string what, std::string help, ExitCode code) {
  throw UserError({.what = std::move(what), .where = shown(job.command), .help = std::move(help)},
                  code);
}

/// Of a dump of Python's threads, the main one last and each innermost first: where the program's
/// own code is, as "train.py:30 in main", or "".
std::string place_in(const fs::path& dump) {
  static const std::regex kFrame(R"re(\s*File "([^"]+)", line (\d+) in (.+))re");
  static const std::regex kOfOthers("/(torch|multiprocessing|lib/python[0-9.]+)/|^<");
  std::ifstream file(dump);
  std::string place;
  for (std::string line; std::getline(file, line);) {
    std::smatch frame;
    if (line.starts_with("Thread") || line.starts_with("Current thread")) place.clear();
    if (!place.empty() || !std::regex_match(line, frame, kFrame)) continue;
    const std::string path = frame[1];
    if (std::regex_search(path, kOfOthers)) continue;
    place = fmt::format(
        "{}:{} in {}", fs::path(path).filename().string(), frame[2].str(), frame[3].str());
  }
  return place;
}

/// " at train.py:30 in main", or "".
std::string doing_text(const fs::path& folder) {
  std::set<std::string> places;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(kDoingPrefix)) continue;
    if (std::string place = place_in(entry.path()); !place.empty()) places.insert(std::move(place));
  }
  return places.empty() ? "" : fmt::format(" at {}", fmt::join(places, " and "));
}

/// ", after 12 optimizer steps" of the process that took the most.
std::string progress_text(const fs::path& folder) {
  int64_t most = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    int64_t steps = 0;
    if (std::ifstream(entry.path() / kStepsTaken) >> steps) most = std::max(most, steps);
  }
  if (most == 0) return ", and no optimizer step was seen";
  return fmt::format(", after {} optimizer step{}", most, most == 1 ? "" : "s");
}

void throw_if_timed_out(const ExecJob& job, const fs::path& folder, const Patience& patience) {
  if (!patience.timed_out()) return;
  fail(job,
       fmt::format("the program was ended after {} s{}{}",
                   job.timeout_seconds,
                   doing_text(folder),
                   progress_text(folder)),
       "it hangs, or needs longer: give --steps K, or a larger --timeout (0: none)",
       ExitCode::kMachineLacks);
}

std::string help_for_unanswered(const ExecJob& job, const std::vector<std::string>& unanswered) {
  if (unanswered.front().find("was not run") != std::string::npos) {
    return "give --ranks auto, which runs the ranks that are waited for, or name them in --ranks";
  }
  return fmt::format(
      "take that out of the program{}; for counts that do not matter to memory, give "
      "--accept-invented-counts",
      job.assumed.fullest_expert ? "" : "; for a router's counts, give --expert-balance");
}

std::string help_without_gpu(const ExecJob& job) {
  std::string help = "it must run a torch of `onerank list torch` on the device cuda";
  const bool reads_input =
      std::find(job.command.begin(), job.command.end(), "-") != job.command.end();
  const bool is_empty = !has_input(job) || isatty(STDIN_FILENO) != 0;
  if (!reads_input || !is_empty) return help;
  return "its standard input is empty, because there are several ranks or a terminal: give a file "
         "in place of -; " +
         help;
}

/// A profile of a run that went on with a wrong answer must not pass for a result.
void throw_if_unanswered(const ExecJob& job, const std::vector<std::string>& unanswered) {
  if (unanswered.empty()) return;
  fail(job,
       fmt::format("the program asked for a value that cannot be invented: {}",
                   fmt::join(unanswered, ", ")),
       help_for_unanswered(job, unanswered),
       ExitCode::kMachineLacks);
}

/// The lines of a file that processes wrote together, once each.
std::set<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  return lines;
}

std::string last_line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

/// What a program that failed was given and that may not be so.
struct GivenValues {
  std::set<std::string> taken;     ///< messages of absent ranks: what it held itself
  std::set<std::string> passed;    ///< barriers behind which it waited for nobody
  std::set<std::string> invented;  ///< operators that read what only kernels would have computed
  std::string refused;             ///< the last function without an answer, and why; "": none
};

/// Ranks that gather wait for nobody: copies of this rank's value stand in for the others, also
/// with --ranks auto.
const char* help_for_taken(const std::set<std::string>& taken) {
  const bool has_gathered = std::any_of(taken.begin(), taken.end(), [](const std::string& line) {
    return line.starts_with("all_gather ") || line.starts_with("gather ");
  });
  return has_gathered
             ? "--ranks with all ranks of the group gives each its own (auto does not run ranks "
               "that only gather), or --steps K ends the program before it gathers, such as to "
               "save a checkpoint"
             : "--ranks auto runs the ranks that are waited for";
}

std::string help_for(const GivenValues& given) {
  std::string help = "see its output above";
  if (!given.taken.empty()) {
    help += fmt::format(
        "; in place of messages of absent ranks it was given what it held itself ({}): {}",
        fmt::join(given.taken, "; "),
        help_for_taken(given.taken));
  }
  if (!given.passed.empty()) {
    help += fmt::format(
        "; it did not wait for absent ranks at barriers ({}): what they would have prepared is not "
        "there, unless --ranks runs them too",
        fmt::join(given.passed, "; "));
  }
  if (!given.invented.empty()) {
    help += fmt::format("; it had read zeros for values that only kernels would have computed ({})",
                        fmt::join(given.invented, ", "));
  }
  return help;
}

void throw_if_failed(const ExecJob& job, const GivenValues& given, const SubprocessEnd& end) {
  if (end.signal_number != 0) {
    throw estimator::killed_error(
        "the program",
        end.signal_number,
        shown(job.command),
        estimator::help_for_killed(end.signal_number, "", "see its output above"));
  }
  if (end.exit_code == 0) return;
  fail(job,
       fmt::format("{}the program ended with exit code {}",
                   given.refused.empty()
                       ? ""
                       : fmt::format("the virtual GPU has no answer for {}; ", given.refused),
                   end.exit_code),
       is_python(job.command)
           ? help_for(given)
           : fmt::format("see its output above; a torch other than {} is only found where the "
                         "program is given as its Python and a script",
                         ONERANK_TORCH_VERSION),
       ExitCode::kBadInput);
}

/// What is missing would be told by the dynamic loader, in every process, for each library.
void check_recorder(const ExecJob& job) {
  for (const char* library : {kHooks, kRecorder}) {
    if (fs::exists(job.stubs / "exec" / library)) continue;
    throw UserError({.what = fmt::format("{} is not there", library),
                     .where = (job.stubs / "exec").string(),
                     .help = "run scripts/quickstart, which builds it"},
                    ExitCode::kMachineLacks);
  }
}

GivenValues given_values(const fs::path& folder, const ProgramProcesses& processes) {
  GivenValues given{.taken = lines_of(folder / kTakenForOwn),
                    .passed = lines_of(folder / kPassedBarriers),
                    .refused = last_line_of(folder / kRefusedFunctions)};
  for (const ProgramProcess& process : processes.all()) {
    for (const auto& read : process.profile.program->invented_reads) {
      given.invented.insert(read.reader.empty() ? "a copy" : read.reader);
    }
  }
  return given;
}

std::set<int64_t> ranks_skipped_in(const fs::path& folder) {
  std::set<int64_t> ranks;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kSkippedPrefix)) continue;
    ranks.insert(std::strtoll(name.c_str() + std::strlen(kSkippedPrefix), nullptr, 10));
  }
  return ranks;
}

/// No other process of the program stands for the one whose profile is missing.
void throw_if_recorder_failed(const ExecJob& job, const ProgramProcesses& processes) {
  const std::string error = processes.recorder_error();
  if (error.empty()) return;
  fail(job,
       fmt::format("Onerank could not record the program: {}", error.substr(0, error.find('\n'))),
       "unless the disk is full, this is an error in Onerank: please report it, with the program",
       ExitCode::kInternal);
}

/// Of the process that was the rank, or tells most of a program that did not train.
const ProgramProcess& process_of_rank(const ExecJob& job,
                                      const WantedRank& wanted,
                                      const ProgramProcesses& processes,
                                      const fs::path& folder,
                                      const SubprocessEnd& end,
                                      const Patience& patience) {
  if (candidates(processes.all(), wanted).empty()) {
    const auto refusals = lines_of(folder / kRefusals);  // also of processes without a profile
    throw_if_unanswered(job, {refusals.begin(), refusals.end()});
    throw_if_recorder_failed(job, processes);
    throw_if_timed_out(job, folder, patience);
    throw_if_failed(job, given_values(folder, processes), end);
  }
  if (!processes.all().empty()) return rank_process(processes.all(), wanted);
  if (processes.count_started() > 0) {
    fail(job,
         "the program used the GPU and left no profile",
         "its process was killed, or ended without its exit handlers: see its output above",
         ExitCode::kMachineLacks);
  }
  if (const std::set<int64_t> skipped = ranks_skipped_in(folder); !skipped.empty()) {
    fail(job,
         fmt::format("the program's launcher started the ranks {}, not rank {}",
                     fmt::join(skipped, ", "),
                     wanted.rank),
         "give --rank one of these, or the launcher the flags that it has on that rank's node",
         ExitCode::kBadInput);
  }
  fail(job, "the program did not use the GPU", help_without_gpu(job), ExitCode::kMachineLacks);
}

void keep_memory_files(const ExecJob& job, int64_t rank, const ProgramProcess& process) {
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    const fs::path made = process.folder / kMemoryFiles[file].suffix;
    if (fs::exists(made)) fs::copy_file(made, job.memory_folder / memory_file_name(file, rank));
  }
}

RankProfile run_as_rank(const ExecJob& job,
                        int64_t rank,
                        const fs::path& path,
                        const Environment& environment,
                        const Interrupts& interrupts) {
  const auto preload = virtual_gpu_preload("run scripts/quickstart, which builds it",
                                           job.stubs,
                                           job.device == DeviceKind::kVirtual ? "" : kStubOfNccl);
  check_recorder(job);
  const PreloadFolder hooks_folder(job.stubs / "exec");
  const TemporaryFolder scratch;
  const Descendants descendants;
  fs::create_directory(process_folder(scratch.path()));
  ProgramProcesses processes(process_folder(scratch.path()));
  const WantedRank wanted = {
      .rank = rank,
      .world_size = job.world_is_given ? std::optional(job.world_size) : std::nullopt};
  Patience patience(job, wanted, processes);
  const SubprocessHooks hooks = {.on_output_line = [](std::string_view) {},
                                 .on_tick = [] {},
                                 .is_to_end = [&] { return patience.is_over(); }};
  const SubprocessEnd end =
      run_subprocess(command_for(job,
                                 rank,
                                 (hooks_folder.path() / kHooks).string() + ":" + preload->value(),
                                 scratch.path(),
                                 environment),
                     hooks,
                     interrupts);

  processes.look();
  const fs::path folder = process_folder(scratch.path());
  const ProgramProcess& process = process_of_rank(job, wanted, processes, folder, end, patience);
  throw_if_unanswered(job, process.profile.program->unanswered);
  if (!end.was_ended && !process.profile.out_of_memory) {
    throw_if_failed(job, given_values(folder, processes), end);
  }
  RankProfile profile = process.profile;
  profile.program->run = job.run;
  estimator::write_file_whole(path.string(), estimator::document_text(profile));
  keep_memory_files(job, rank, process);
  return profile;
}

std::string help_for_no_program(const std::string& program) {
  const bool is_python = fs::path(program).extension() == ".py";
  if (std::error_code ignored; is_python && fs::is_regular_file(program, ignored)) {
    return fmt::format("a script is started by its interpreter: -- python {}", program);
  }
  return program.find('/') == std::string::npos
             ? "no folder of PATH has such a program: give its path"
             : "there is no such program, or it may not be executed";
}

}  // namespace

void check_command(const std::vector<std::string>& command, const Environment& environment) {
  if (!find_executable(command.front(), environment).empty()) return;
  throw UserError({.what = fmt::format("cannot start {}", command.front()),
                   .where = shown(command),
                   .help = help_for_no_program(command.front())});
}

RankProfile exec_rank(const ExecJob& job,
                      int64_t rank,
                      const Environment& environment,
                      const Interrupts& interrupts) {
  const fs::path profile = job.output_folder / estimator::profile_file_name(rank);
  const fs::path refusal = fs::path(profile).replace_extension(kErrorExtension);
  fs::remove(profile);
  fs::remove(refusal);
  try {
    return run_as_rank(job, rank, profile, environment, interrupts);
  } catch (const UserError& error) {
    estimator::write_file_whole(refusal.string(), error.what());
    throw;
  }
}

}  // namespace sim
