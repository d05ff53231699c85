#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "estimator/cluster/roofline.h"
#include "sim/cli/commands/cluster_job.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::format_duration;
using estimator::Roofline;
using estimator::RooflineRow;

struct RooflineOptions {
  ClusterJob job;
  std::string output;
  bool json = false;
};

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string bound_table(const Roofline& roofline) {
  Table table({{"what the step waits for", Align::kLeft},
               {"time"},
               {"share"},
               {"step, if twice as fast"},
               {"moved by", Align::kLeft}});
  for (const estimator::StepBound& bound : roofline.bounds) {
    table.add_row({bound.name,
                   format_duration(bound.seconds),
                   percent(bound.share_of_step),
                   format_duration(bound.step_seconds_if_twice_as_fast),
                   bound.moved_by});
  }
  return table.text(2);
}

std::string row_table(const char* title, const std::vector<RooflineRow>& rows) {
  constexpr double kTera = 1e12;
  constexpr std::size_t kShown = 12;
  Table table({{title, Align::kLeft},
               {"calls"},
               {"time"},
               {"share"},
               {"FLOP/byte"},
               {"", Align::kLeft},
               {"TFLOP/s"},
               {"of peak"},
               {"TB/s"},
               {"of peak"}});
  for (std::size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
    const RooflineRow& row = rows[i];
    table.add_row({row.name,
                   estimator::with_commas(row.count),
                   format_duration(row.seconds),
                   percent(row.share_of_compute),
                   fmt::format("{:.1f}", row.flops_per_byte),
                   estimator::to_string(row.intensity),
                   fmt::format("{:.1f}", row.flops_per_second / kTera),
                   percent(row.share_of_peak_flops),
                   fmt::format("{:.2f}", row.bytes_per_second / kTera),
                   percent(row.share_of_peak_bandwidth)});
  }
  const std::size_t left = rows.size() - std::min(rows.size(), kShown);
  return "\n" + table.text(2) + (left > 0 ? fmt::format("  and {} more (--json)\n", left) : "");
}

std::string roofline_text(const Roofline& roofline) {
  return fmt::format(
             "One iteration: {}; kernels of rank {}, whose stage is busy longest, on {}: "
             "{:.0f} FLOP/byte at the ridge\n",
             format_duration(roofline.iteration_seconds),
             roofline.rank,
             roofline.gpu,
             roofline.ridge_flops_per_byte) +
         bound_table(roofline) + row_table("operator", roofline.operators) +
         row_table("module", roofline.modules) + row_table("phase", roofline.phases) +
         row_table("hotspot", roofline.hotspots);
}

/// Time is told of plans alone.
void refuse_program(const std::vector<estimator::RankProfile>& profiles) {
  if (profiles.empty()) return;
  throw estimator::UserError(
      {.what = "a program's time is not known, so neither is its roofline",
       .where = fmt::format("rank {} ran {} under `onerank exec`",
                            profiles.front().rank,
                            fmt::join(profiles.front().program->command, " ")),
       .help = "`onerank estimate --profiles DIR` tells its memory; give a plan and profiles of "
               "`onerank run` for a roofline"});
}

ExitCode run_roofline(const RooflineOptions& options, const Environment& environment) {
  check_writable_document(options.output, "--output");
  refuse_program(options.job.program_profiles());
  const ClusterResult result = options.job.run(environment);
  const Roofline roofline =
      estimator::roofline_of(result.input.plan, result.profiles, result.estimate, result.rates());
  const std::string json = estimator::document_text(roofline);
  if (!options.output.empty()) estimator::write_file_whole(options.output, json);
  if (options.json) {
    write_to_standard_error(allocator_line(result.input));
    write_to_standard_output(json);
  } else {
    write_to_standard_output(plan_text(result.input) + "\n" + roofline_text(roofline));
  }
  return ExitCode::kDone;
}

}  // namespace

Command add_roofline_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "roofline", "what bounds the step: kernels by operator, module and phase, and hotspots");
  const auto options = std::make_shared<RooflineOptions>();
  app->add_flag("--json", options->json, "print it as JSON")->group("Output");
  app->add_option("--output", options->output, "write it as JSON")
      ->type_name("FILE")
      ->group("Output");
  options->job.add_to(*app);
  return {app, [options](const Environment& environment) {
            return run_roofline(*options, environment);
          }};
}

}  // namespace sim
