#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "estimator/program/program_estimate.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/exec_flags.h"
#include "sim/cli/commands/exec_job.h"
#include "sim/cli/commands/exec_report.h"
#include "sim/cli/process/terminal.h"
#include "sim/cli/programs/exec_folders.h"
#include "sim/cli/programs/exec_ranks.h"
#include "sim/cli/ranks/rank_process.h"
#include "sim/cli/report/program_report.h"
#include "sim/cli/torch/program_torch.h"
#include "sim/cli/torch/torch_stubs.h"
#include "sim/cli/torch/virtual_gpu_setup.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::RankProfile;
using estimator::UserError;

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

/// The profiles of the ranks, whose memory files are written.
std::vector<RankProfile> run_job(ExecJob job,
                                 const RanksToExec& ranks,
                                 const SideBySide& how,
                                 const Environment& environment,
                                 const Interrupts& interrupts) {
  const auto torch = find_program_torch(job.command, environment, interrupts);
  job.stubs = torch ? stubs_for(*torch, environment, interrupts) : parts_folder();
  const ExecFolders folders(job.output_folder, ranks.are_several());
  folders.put_into(job);
  std::vector<RankProfile> profiles = exec_ranks(job, ranks, how, environment, interrupts);
  std::vector<int64_t> executed;
  std::ranges::transform(profiles, std::back_inserter(executed), &RankProfile::rank);
  write_memory_files(job.memory_files, executed, job.memory_folder);
  return profiles;
}

ExitCode run_exec(const ExecFlags& flags, const CLI::App& app, const Environment& environment) {
  ExecJob job = exec_job(flags, app, environment);
  estimator::ProgramRun run = flags.program_flags.run(flags.plan_flags);
  run.measured_step_seconds = flags.measured_step.seconds();
  refuse_unprinted_answers(flags);
  const RanksToExec ranks = ranks_to_exec(flags, job, environment);
  flags.gate.check();
  const SideBySide how = {.at_once = ranks_at_once(flags, job.device),
                          .display = standard_error_display(),
                          .on_rank = [&](const RankProfile& profile, const std::string& output) {
                            show_rank(flags, profile, output);
                          }};
  check_exec_outputs(flags, ranks.named);
  std::optional<DetailFiles> detail;
  if (flags.html.is_given()) {
    detail.emplace(job.memory_files);
    job.memory_files = detail->paths();
  }
  check_command(job.command, environment);
  const Interrupts interrupts;  // until the end: nothing is left behind when a signal acts
  const auto profiles = run_job(std::move(job), ranks, how, environment, interrupts);
  report_profiles(flags, profiles, run, detail);
  return verdict_on(profiles, flags.gate);
}

}  // namespace

Command add_exec_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "exec", "run your PyTorch program as one rank of any world, without a GPU");
  const auto flags = std::make_shared<ExecFlags>();
  add_exec_flags(*app, *flags);
  return {app, [flags, app](const Environment& environment) {
            return run_exec(*flags, *app, environment);
          }};
}

}  // namespace sim
