#include <memory>

#include "estimator/base/document.h"
#include "estimator/cluster/program_estimate.h"
#include "sim/cli/commands/cluster_job.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/verdict_gate.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/documents.h"
#include "sim/cli/report/estimate_report.h"
#include "sim/cli/report/plan_report.h"

namespace sim {
namespace {

using estimator::ExitCode;

struct CheckOptions {
  ClusterJob job;
  VerdictGate gate;
  bool json = false;
};

/// Of a program from its profiles alone, or of a plan.
estimator::Verdict verdict_of(const ClusterJob& job, const Environment& environment) {
  const auto of_a_program = job.program_profiles({});
  if (!of_a_program.empty()) return estimator::estimate_program(of_a_program).verdict;
  const ClusterResult result = job.run(environment);
  write_to_standard_error(input_lines(result.input) + result.lacking_gpus());
  return result.estimate.verdict;
}

ExitCode run_check(const CheckOptions& options, const Environment& environment) {
  options.gate.check();
  const estimator::Verdict verdict = verdict_of(options.job, environment);
  if (options.json) {
    write_to_standard_output(estimator::document_text(VerdictDocument{.verdict = verdict}));
  } else {
    write_report(verdict_text(verdict), environment);
  }
  return options.gate.exit_code(verdict.outcome);
}

}  // namespace

Command add_check_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "check", "print only the verdict, as a gate: exit code 1 means that the plan does not fit");
  const auto options = std::make_shared<CheckOptions>();
  app->add_flag("--json", options->json, "print the verdict as JSON")->group("Output");
  options->gate.add_to(*app);
  options->job.add_to(*app);
  return {app,
          [options](const Environment& environment) { return run_check(*options, environment); }};
}

}  // namespace sim
