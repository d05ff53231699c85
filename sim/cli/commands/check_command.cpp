#include <iostream>
#include <memory>

#include "sim/cli/cluster/cluster_job.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/cluster/verdict_gate.h"
#include "sim/cli/output.h"
#include "sim/cli/report/estimate_report.h"
#include "sim/cli/report/plan_report.h"

namespace sim {
namespace {

using estimator::ExitCode;

struct CheckOptions {
  ClusterJob job;
  bool json = false;
};
  VerdictGate gate;

ExitCode run_check(const CheckOptions& options, const Environment& environment) {
  options.gate.check();
  const ClusterResult result = options.job.run(environment);
  const estimator::Verdict& verdict = result.estimate.verdict;
  std::cerr << allocator_line(result.input);
  write_to_standard_output(options.json ? estimator::to_json(verdict).dump(1) + "\n"
                                        : verdict_text(verdict));
  return options.gate.exit_code(verdict.outcome);
}

}  // namespace

Command add_check_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("check", "the verdict alone, as a gate: exit code 1 is no");
  const auto options = std::make_shared<CheckOptions>();
  app->add_flag("--json", options->json, "print the verdict as JSON")->group("Output");
  options->job.add_to(*app);
  return {app,
          [options](const Environment& environment) { return run_check(*options, environment); }};
}

}  // namespace sim
  options->gate.add_to(*app);
