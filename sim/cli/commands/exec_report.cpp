#include "sim/cli/commands/exec_report.h"

#include <fmt/format.h>

#include <filesystem>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/program/program_estimate.h"
#include "estimator/program/program_roofline.h"
#include "sim/cli/commands/program_trace_output.h"
#include "sim/cli/page/program_page.h"
#include "sim/cli/process/output.h"
#include "sim/cli/process/terminal.h"
#include "sim/cli/report/program_report.h"
#include "sim/cli/report/program_time_text.h"
#include "sim/cli/report/program_timeline_text.h"
#include "sim/cli/report/roofline_report.h"
#include "sim/cli/report/verdict_report.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::RankProfile;
using estimator::UserError;

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

/// "rank-00000.json"
bool is_profile_name(const std::string& name) {
  return name.starts_with("rank-") && name.ends_with(".json");
}

/// The step as it is replayed, if something of it is wanted; it is written and printed as asked
/// for.
std::optional<estimator::ProgramReplay> show_step(
    const ExecFlags& flags,
    const std::vector<RankProfile>& profiles,
    const std::optional<estimator::ProgramEstimate>& estimate,
    const estimator::ProgramRun& run) {
  const bool has_time = estimate && estimate->time;
  const bool shows_step = flags.timeline || flags.roofline || flags.html.is_given();
  if (flags.trace.empty() && !(has_time && shows_step)) return std::nullopt;
  estimator::ProgramReplay replay = estimator::replay_program(profiles, nullptr, run);
  if (!flags.trace.empty()) write_program_trace(flags.trace, replay);
  if (flags.timeline) {
    write_to_standard_output(program_timeline_text(replay, output_columns()));
  }
  if (flags.roofline) {
    write_to_standard_output("\n" + roofline_text(estimator::program_roofline(replay)));
  }
  return replay;
}

}  // namespace

void check_exec_outputs(const ExecFlags& flags, const std::vector<int64_t>& ranks) {
  check_writable_folder(flags.output, "--output");
  if (fs::is_directory(flags.output)) {
    for (const int64_t rank : ranks) {
      check_writable(fs::path(flags.output) / estimator::profile_file_name(rank), "--output");
    }
    for (const auto& entry : fs::directory_iterator(flags.output)) {  // --ranks auto adds ranks
      if (is_profile_name(entry.path().filename().string())) {
        check_writable(entry.path(), "--output");
      }
    }
  }
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    if (flags.memory_files[file].empty()) continue;
    check_writable(flags.memory_files[file], kMemoryFiles[file].flag);
  }
  check_writable(flags.trace, "--trace");
  check_writable_document(flags.estimate, "--estimate");
  flags.html.check();
}

void show_rank(const ExecFlags& flags, const RankProfile& profile, const std::string& output) {
  if (flags.json) {
    write_to_standard_error(output);
    return;
  }
  write_to_standard_output(output);
  write_to_standard_output("\n" + program_text(profile, flags.verbose));
}

void report_profiles(const ExecFlags& flags,
                     const std::vector<RankProfile>& profiles,
                     const estimator::ProgramRun& run,
                     const std::optional<DetailFiles>& detail) {
  const auto estimate = estimate_of(profiles, run);
  if (!flags.json) write_to_standard_output(step_time_text(estimate, profiles));
  if (estimate && !flags.estimate.empty()) {
    estimator::write_file_whole(flags.estimate, estimator::document_text(*estimate));
  }
  const auto replay = show_step(flags, profiles, estimate, run);
  if (detail) {
    const int64_t rank = detailed_rank(profiles, estimate).rank;
    flags.html.write(program_page(profiles,
                                  {.command = "onerank exec",
                                   .estimate = estimate,
                                   .replay = replay ? &*replay : nullptr,
                                   .detail = detail->read(rank, profiles.size())}));
  }
  write_to_standard_output(flags.json ? estimator::document_text(document_of(profiles))
                                      : fullest_text(profiles, flags.gate));
}

}  // namespace sim
