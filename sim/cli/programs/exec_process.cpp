#include "sim/cli/programs/exec_process.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "estimator/base/document.h"
#include "estimator/base/errors.h"
#include "estimator/base/files.h"
#include "sim/cli/process/descendants.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/programs/program_command.h"
#include "sim/cli/programs/program_failures.h"
#include "sim/cli/programs/program_processes.h"
#include "sim/cli/torch/virtual_gpu_setup.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::RankProfile;
using estimator::UserError;
using Clock = std::chrono::steady_clock;

/// For a program that was told to end to do so.
constexpr std::chrono::seconds kEndingTime{60};

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

/// The process that was the rank; or, of a program that did not train, the one that tells most.
const ProgramProcess& process_of_rank(const ExecJob& job,
                                      const WantedRank& wanted,
                                      const ProgramProcesses& processes,
                                      const fs::path& folder,
                                      const SubprocessEnd& end,
                                      const Patience& patience) {
  if (candidates(processes.all(), wanted).empty()) {
    throw_if_refused(job, folder);
    throw_if_recorder_failed(job, processes);
    if (patience.timed_out()) throw_timed_out(job, folder);
    if (end.exit_code != 0) throw_if_world_is_unknown(job, wanted, processes, folder);
    throw_if_failed(job, folder, processes, end);
  }
  if (!processes.all().empty()) return rank_process(processes.all(), wanted);
  throw_without_profile(job, wanted, processes, folder);
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
  const SubprocessEnd end = run_subprocess(
      program_command(job,
                      rank,
                      (hooks_folder.path() / kHooks).string() + ":" + preload->value(),
                      scratch.path(),
                      environment),
      hooks,
      interrupts);

  processes.look();
  const fs::path folder = process_folder(scratch.path());
  const ProgramProcess& process = process_of_rank(job, wanted, processes, folder, end, patience);
  throw_if_unanswered(job, folder, process.profile.program->unanswered);
  if (!end.was_ended && !process.profile.out_of_memory) {
    throw_if_failed(job, folder, processes, end);
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
