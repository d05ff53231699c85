#include "sim/cli/programs/program_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string_view>

#include "estimator/base/errors.h"
#include "sim/cli/programs/program_command.h"
#include "sim/cli/torch/program_torch.h"
#include "sim/exec/messages/peer_messages.h"
#include "sim/exec/program/settings.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::ExitCode;
using estimator::UserError;

[[noreturn]] void throw_error(const ExecJob& job,
                              std::string what,
                              std::string help,
                              ExitCode code) {
  throw UserError({.what = std::move(what), .where = shown(job.command), .help = std::move(help)},
                  code);
}

/// Of a dump of Python's threads, the main one last and each innermost first: where the program's
/// own code is, as "train.py:30 in main", or "".
std::string place_in(const fs::path& dump) {
  static const std::regex kFrame(R"re(\s*File "([^"]+)", line (\d+) in (.+))re");
  static const std::regex kOfOthers("/(torch|multiprocessing|lib/python[0-9.]+|exec/observer)/|^<");
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

/// Optimizer steps of the process that took the most.
int64_t steps_taken(const fs::path& folder) {
  int64_t most = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    int64_t steps = 0;
    if (std::ifstream(entry.path() / kStepsTaken) >> steps) most = std::max(most, steps);
  }
  return most;
}

/// ", after 12 optimizer steps".
std::string progress_text(const fs::path& folder) {
  const int64_t most = steps_taken(folder);
  if (most == 0) return ", and no optimizer step was seen";
  return fmt::format(", after {} optimizer step{}", most, most == 1 ? "" : "s");
}

/// "give --steps 2, which ends the program before that; or ", if it took steps before.
std::string help_to_end_before(const ExecJob& job, const fs::path& folder) {
  const int64_t steps = steps_taken(folder);
  if (steps == 0 || (job.steps > 0 && steps >= job.steps)) return "";
  return fmt::format("give --steps {}, which ends the program before that; or ", steps);
}

std::string help_for_unanswered(const ExecJob& job,
                                const fs::path& folder,
                                const std::vector<std::string>& unanswered) {
  if (unanswered.front().find("was not run") != std::string::npos) {
    return "give --ranks auto, which runs the ranks that are waited for, or name them in --ranks";
  }
  if (unanswered.front().find(kOnOtherMachines) != std::string::npos) {
    return "share memory among ranks of one machine alone (--gpus-per-node is how many it has), or "
           "use NCCL's collectives";
  }
  return fmt::format(
      "{}take that out of the program{}; for counts that do not matter to memory, give "
      "--accept-invented-counts",
      help_to_end_before(job, folder),
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
  std::set<std::string> taken;       ///< messages of absent ranks: what it held itself
  std::set<std::string> passed;      ///< barriers behind which it waited for nobody
  std::set<std::string> invented;    ///< operators that read what only kernels would have computed
  std::string refused;               ///< the last function without an answer, and why; "": none
  std::set<std::string> exceptions;  ///< that ended its processes; none where they are not known
};

/// Ranks that gather wait for nobody: copies of this rank's value stand in for the others, also
/// with --ranks auto.
const char* help_for_taken(const std::set<std::string>& taken) {
  const bool has_gathered = std::any_of(taken.begin(), taken.end(), [](const std::string& line) {
    return line.starts_with("all_gather ") || line.starts_with("gather ");
  });
  return has_gathered
             ? "--ranks with all ranks of the group gives each its own (auto does not run ranks "
               "that only gather), or --steps K ends the program before it gathers"
             : "--ranks auto runs the ranks that are waited for";
}

/// Of a program that starts Python itself.
constexpr const char* kHelpForOtherTorch =
    "; a torch other than " ONERANK_TORCH_VERSION
    " is only found where the program is given as its Python and a script";

/// Exceptions that cannot come from what the program was given, by the beginning of their text:
/// those of its code and its installation, and of workers without the GPU.
constexpr std::string_view kOfTheProgram[] = {"AttributeError: module ",
                                              "ImportError:",
                                              "IndentationError:",
                                              "ModuleNotFoundError:",
                                              "NameError:",
                                              "SyntaxError:",
                                              "TypeError:"};
constexpr std::string_view kOfAWorker = "in DataLoader worker process";

bool is_of_the_program(const std::string& exception) {
  return exception.find(kOfAWorker) != exception.npos ||
         std::any_of(std::begin(kOfTheProgram),
                     std::end(kOfTheProgram),
                     [&](std::string_view start) { return exception.starts_with(start); });
}

std::string help_for(const GivenValues& given) {
  std::string help = "see its output above";
  const auto& raised = given.exceptions;
  if (!raised.empty() && std::all_of(raised.begin(), raised.end(), is_of_the_program)) return help;
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
    help += fmt::format(
        "; it had read zeros for values that only kernels would have computed ({}): where it "
        "checks them, take the check out (python -O leaves out every assert)",
        fmt::join(given.invented, ", "));
  }
  return help;
}

/// " (ValueError: no such file)", or "".
std::string exceptions_text(const std::set<std::string>& exceptions) {
  constexpr std::size_t kLongest = 200;
  if (exceptions.empty()) return "";
  return fmt::format(" ({})", exceptions.begin()->substr(0, kLongest));
}

GivenValues given_values(const fs::path& folder, const ProgramProcesses& processes) {
  GivenValues given{.taken = lines_of(folder / kTakenForOwn),
                    .passed = lines_of(folder / kPassedBarriers),
                    .refused = last_line_of(folder / kRefusedFunctions),
                    .exceptions = lines_of(folder / kExceptions)};
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

}  // namespace

std::string shown(const std::vector<std::string>& command) {
  return fmt::format("{}", fmt::join(command, " "));
}

void throw_timed_out(const ExecJob& job, const fs::path& folder) {
  throw_error(job,
              fmt::format("the program was ended after {} s{}{}",
                          job.timeout_seconds,
                          doing_text(folder),
                          progress_text(folder)),
              fmt::format("it hangs, or needs longer: give {}a larger --timeout (0: none)",
                          job.steps > 0 ? "" : "--steps K, or "),
              ExitCode::kMachineLacks);
}

void throw_if_unanswered(const ExecJob& job,
                         const fs::path& folder,
                         const std::vector<std::string>& unanswered) {
  if (unanswered.empty()) return;
  throw_error(job,
              fmt::format("the program asked for a value that cannot be invented: {}",
                          fmt::join(unanswered, ", ")),
              help_for_unanswered(job, folder, unanswered),
              ExitCode::kMachineLacks);
}

void throw_if_refused(const ExecJob& job, const fs::path& folder) {
  const std::set<std::string> refusals = lines_of(folder / kRefusals);
  throw_if_unanswered(job, folder, {refusals.begin(), refusals.end()});
}

void throw_if_recorder_failed(const ExecJob& job, const ProgramProcesses& processes) {
  const std::string error = processes.recorder_error();
  if (error.empty()) return;
  throw_error(
      job,
      fmt::format("Onerank could not record the program: {}", error.substr(0, error.find('\n'))),
      "unless the disk is full, this is an error in Onerank: please report it, with the program",
      ExitCode::kInternal);
}

void throw_if_failed(const ExecJob& job,
                     const fs::path& folder,
                     const ProgramProcesses& processes,
                     const SubprocessEnd& end) {
  if (end.signal_number != 0) {
    throw estimator::killed_error(
        "the program",
        end.signal_number,
        shown(job.command),
        estimator::help_for_killed(end.signal_number, "", "see its output above"));
  }
  if (end.exit_code == 0) return;
  const GivenValues given = given_values(folder, processes);
  const bool may_have_other_torch = !is_python(job.command) && processes.count_started() == 0;
  throw_error(
      job,
      fmt::format("{}the program ended with exit code {}{}",
                  given.refused.empty()
                      ? ""
                      : fmt::format("the virtual GPU has no answer for {}; ", given.refused),
                  end.exit_code,
                  exceptions_text(given.exceptions)),
      help_for(given) + (may_have_other_torch ? kHelpForOtherTorch : ""),
      ExitCode::kBadInput);
}

void throw_if_world_is_unknown(const ExecJob& job,
                               const WantedRank& wanted,
                               const ProgramProcesses& processes,
                               const fs::path& folder) {
  if (job.world_is_given || wanted.rank < job.world_size) return;
  const auto& all = processes.all();
  const bool has_world = std::any_of(all.begin(), all.end(), [&](const ProgramProcess& process) {
    return process.profile.world_size > wanted.rank;
  });
  if (has_world || !ranks_skipped_in(folder).empty()) return;
  throw_error(job,
              fmt::format("the program failed as rank {} of a world of which nobody told it the "
                          "size",
                          wanted.rank),
              "give --world-size N, unless a launcher of its own starts the ranks: then see its "
              "output above",
              ExitCode::kBadInput);
}

void throw_without_profile(const ExecJob& job,
                           const WantedRank& wanted,
                           const ProgramProcesses& processes,
                           const fs::path& folder) {
  if (processes.count_started() > 0) {
    throw_error(job,
                "the program used the GPU and left no profile",
                "its process was killed, or ended without its exit handlers: see its output above",
                ExitCode::kMachineLacks);
  }
  if (const std::set<int64_t> skipped = ranks_skipped_in(folder); !skipped.empty()) {
    throw_error(
        job,
        fmt::format("the program's launcher started the ranks {}, not rank {}",
                    fmt::join(skipped, ", "),
                    wanted.rank),
        fmt::format("give --world-size {} if these are all, --rank one of these, or the launcher "
                    "the flags that it has on that rank's node",
                    *skipped.rbegin() + 1),
        ExitCode::kBadInput);
  }
  throw_error(
      job, "the program did not use the GPU", help_without_gpu(job), ExitCode::kMachineLacks);
}

}  // namespace sim
