#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "estimator/base/document.h"
#include "estimator/program/program_estimate.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/verdict_gate.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/documents.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/verdict_report.h"

namespace sim {
namespace {

using estimator::ExitCode;

struct CheckOptions {
  ClusterJob job;
  VerdictGate gate;
  std::vector<std::string> more_plans;
  bool json = false;
};

/// Of a program from its profiles alone, or of a plan.
estimator::Verdict verdict_of(const ClusterJob& job, const Environment& environment) {
  const auto of_a_program = job.program_profiles({});
  if (!of_a_program.empty()) return estimator::estimate_program(of_a_program).verdict;
  const ClusterResult result = job.run(environment);
  write_to_standard_error(input_lines(result.input) + result.search_instead());
  return result.estimate.verdict;
}

CheckedPlan checked_plan(const std::string& path,
                         const CheckOptions& options,
                         const Environment& environment) {
  CheckedPlan checked{.plan = path};
  try {
    checked.verdict = verdict_of(options.job.of_file(path), environment);
    checked.health = options.gate.health(*checked.verdict);
    checked.exit_code = static_cast<int64_t>(options.gate.exit_code(*checked.verdict));
  } catch (const estimator::UserError& error) {
    write_to_standard_error(error.what());
    checked.exit_code = static_cast<int64_t>(error.exit_code());
    checked.errors = error.problems();
  }
  return checked;
}

/// "plan.json: fits: ...", and how full the GPU is where the gate asks for that.
std::string line_of(const CheckedPlan& checked, const VerdictGate& gate) {
  if (checked.verdict) {
    const std::string line = checked.plan + ": " + verdict_text(*checked.verdict);
    const std::string health =
        gate.asks_for_health() ? health_text(*checked.verdict, *checked.health) : "";
    return health.empty() ? line : line + "  " + health;
  }
  const estimator::Problem& error = checked.errors.front();
  return fmt::format("{}: error: {}: {}\n", checked.plan, error.what, error.where);
}

/// A line for each plan. The exit code is the worst.
ExitCode check_several(const CheckOptions& options, const Environment& environment) {
  std::vector<std::string> paths = options.more_plans;
  paths.insert(paths.begin(), options.job.plan().file());
  CheckedPlans all;
  int64_t worst = 0;
  for (const std::string& path : paths) {
    all.plans.push_back(checked_plan(path, options, environment));
    worst = std::max(worst, all.plans.back().exit_code);
    if (!options.json) write_report(line_of(all.plans.back(), options.gate), environment);
  }
  if (options.json) write_to_standard_output(estimator::document_text(all));
  return static_cast<ExitCode>(worst);
}

ExitCode run_check(const CheckOptions& options, const Environment& environment) {
  options.gate.check();
  if (!options.more_plans.empty()) return check_several(options, environment);
  const estimator::Verdict verdict = verdict_of(options.job, environment);
  const estimator::MemoryHealth health = options.gate.health(verdict);
  const ExitCode exit_code = options.gate.exit_code(verdict);
  if (options.json) {
    write_to_standard_output(estimator::document_text(VerdictDocument{
        .verdict = verdict, .health = health, .exit_code = static_cast<int64_t>(exit_code)}));
  } else {
    write_report(verdict_text(verdict) + health_text(verdict, health), environment);
  }
  return exit_code;
}

}  // namespace

Command add_check_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "check", "print only the verdict, as a gate: exit code 1 means that the plan does not fit");
  const auto options = std::make_shared<CheckOptions>();
  app->add_flag("--json", options->json, "print the verdict as JSON")->group("Output");
  options->gate.add_to(*app);
  options->job.add_to(*app);
  app->add_option(
         "PLANS", options->more_plans, "more plans: a line for each, and the worst exit code")
      ->type_name("FILE")
      ->group("Plan");
  return {app,
          [options](const Environment& environment) { return run_check(*options, environment); }};
}

}  // namespace sim
