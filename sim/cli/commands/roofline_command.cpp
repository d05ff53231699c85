#include <CLI/CLI.hpp>
#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/cluster/roofline.h"
#include "estimator/program/program_estimate.h"
#include "estimator/program/program_roofline.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/program_flags.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/roofline_report.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Roofline;

struct RooflineOptions {
  ClusterJob job;
  std::string output;
  TableFormatFlag format;
};

void answer(const RooflineOptions& options, const Roofline& roofline, const std::string& head) {
  const ReportStyle style = style_for_output(options.format.format());
  const std::string json = estimator::document_text(roofline);
  if (!options.output.empty()) estimator::write_file_whole(options.output, json);
  if (style.format == TableFormat::kJson) return write_to_standard_output(json);
  const bool is_text = style.format == TableFormat::kText;
  write_to_standard_output((is_text ? head : "") + roofline_text(roofline, style));
}

ExitCode answer_program(const RooflineOptions& options,
                        const std::vector<estimator::RankProfile>& profiles) {
  const auto calibration = options.job.calibration_of(profiles);
  const estimator::ProgramRun run = ProgramFlags().run(options.job.plan_flags());
  answer(options,
         estimator::program_roofline(
             estimator::replay_program(profiles, calibration ? &*calibration : nullptr, run)),
         "");
  return ExitCode::kDone;
}

ExitCode run_roofline(const RooflineOptions& options, const Environment& environment) {
  const bool is_text = options.format.format() == TableFormat::kText;
  check_writable_document(options.output, "--output");
  const auto of_a_program = options.job.program_profiles({"cluster.gpu_deviation"});
  if (!of_a_program.empty()) return answer_program(options, of_a_program);
  const ClusterResult result = options.job.run(environment);
  const Roofline roofline =
      estimator::roofline_of(result.input.plan, result.profiles, result.estimate, result.rates());
  if (!is_text) write_to_standard_error(input_lines(result.input));
  answer(options, roofline, plan_text(result.input) + "\n");
  return ExitCode::kDone;
}

}  // namespace

Command add_roofline_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "roofline", "what bounds the step: kernels by operator, module and phase, and hotspots");
  const auto options = std::make_shared<RooflineOptions>();
  options->format.add_to(*app);
  app->add_option("--output", options->output, "write the roofline as JSON")
      ->type_name("FILE")
      ->group("Output");
  options->job.add_to(*app);
  return {app, [options](const Environment& environment) {
            return run_roofline(*options, environment);
          }};
}

}  // namespace sim
