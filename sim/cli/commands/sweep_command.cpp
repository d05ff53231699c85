#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <set>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/plan/option_table.h"
#include "estimator/what_if/sweep.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/jobs/many_plans.h"
#include "sim/cli/jobs/slurm_job.h"
#include "sim/cli/page/comparison_page.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/sweep_report.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Plan;
using estimator::Sweep;
using estimator::SweepAxis;
using estimator::UserError;

constexpr std::size_t kMostCombinations = 4096;

struct SweepOptions {
  ClusterJob job;
  SlurmOptions slurm;
  TableFormatFlag format;
  std::string output;
  HtmlFlag html;
};

/// What the texts mean, if all of them are numbers above 0 and no two are equal; else empty.
std::vector<double> numbers_of(const TypedValues& typed) {
  const estimator::PlanOption* option = estimator::find_plan_option(typed.path);
  const bool is_number =
      typed.path.empty() || (option != nullptr && (option->type == estimator::OptionType::kWhole ||
                                                   option->type == estimator::OptionType::kReal));
  if (!is_number) return {};
  std::vector<double> numbers;
  for (const std::string& text : typed.values) {
    if (text == "auto") return {};
    numbers.push_back(option != nullptr && option->type == estimator::OptionType::kReal
                          ? parse_real_number(text, typed.flag)
                          : static_cast<double>(parse_whole_number(text, typed.flag)));
  }
  const std::set<double> distinct(numbers.begin(), numbers.end());
  return distinct.size() == numbers.size() && *distinct.begin() > 0 ? numbers
                                                                    : std::vector<double>{};
}

std::vector<SweepAxis> axes_of(const PlanOptions& plan) {
  std::vector<SweepAxis> axes;
  std::size_t points = 1;
  for (const TypedValues& typed : plan.several_values()) {
    axes.push_back({typed.flag, typed.path, typed.values, numbers_of(typed)});
    points *= typed.values.size();
  }
  if (axes.empty()) {
    throw UserError({.what = "there is nothing to sweep",
                     .where = "no flag of the plan has several values",
                     .help = "write several values with commas, such as --tp 1,2,4"});
  }
  if (points > kMostCombinations) {
    throw UserError({.what = "the sweep has too many combinations",
                     .where = fmt::format("{} of {} flags", points, axes.size()),
                     .help = fmt::format("give fewer values: at most {} combinations are run",
                                         kMostCombinations)});
  }
  return axes;
}

std::vector<TypedChoice> choices_of(const std::vector<SweepAxis>& axes,
                                    const std::vector<std::string>& values) {
  std::vector<TypedChoice> choices;
  for (std::size_t a = 0; a < axes.size(); ++a) choices.push_back({axes[a].flag, values[a]});
  return choices;
}

/// The first problem in one line.
std::string refusal_text(const UserError& error) {
  const estimator::Problem& problem = error.problems().front();
  std::string where = problem.where.substr(0, problem.where.find('\n'));
  const std::string origin = "command line: ";
  if (where.starts_with(origin)) where.erase(0, origin.size());
  return where.empty() ? problem.what : fmt::format("{}: {}", problem.what, where);
}

/// The same for an error of a rank, which is text already.
std::string refusal_line(const std::string& text) {
  const std::string what = text.substr(0, text.find('\n'));
  const std::string prefix = "error: ";
  return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
}

/// The plans of the points that the rules allow; the others get their refusal.
struct LegalPlans {
  std::vector<Plan> plans;
  std::vector<std::size_t> points;  ///< number of each plan's point
};

/// Throws UserError if no combination is allowed.
LegalPlans legal_plans(const PlanOptions& said, Sweep& sweep, const Environment& environment) {
  LegalPlans legal;
  std::optional<UserError> first_error;
  for (std::vector<std::string>& values : estimator::combinations(sweep.axes)) {
    sweep.points.push_back({.values = std::move(values)});
    try {
      const auto choices = choices_of(sweep.axes, sweep.points.back().values);
      legal.plans.push_back(said.with(choices).resolve(environment).plan);
      legal.points.push_back(sweep.points.size() - 1);
    } catch (const UserError& error) {
      sweep.points.back().refusal = refusal_text(error);
      if (!first_error) first_error = error;
    }
  }
  if (legal.plans.empty()) throw UserError(*first_error);
  return legal;
}

void execute(const LegalPlans& legal,
             const ManyPlans& how,
             const Environment& environment,
             Sweep& sweep) {
  const std::vector<PlanAnswer> answers = estimate_plans(legal.plans, how, environment);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    estimator::SweepPoint& point = sweep.points[legal.points[i]];
    if (answers[i].estimate) {
      point.result = estimator::sweep_result(legal.plans[i], *answers[i].estimate);
    } else {
      point.refusal = refusal_line(answers[i].refusal);
    }
  }
  estimator::add_scaling(sweep);
}

ExitCode run_sweep(const SweepOptions& options,
                   const CLI::App& app,
                   const Environment& environment) {
  const ReportStyle style = style_for_output(options.format.format());
  check_writable_document(options.output, "--output");
  options.html.check();
  const ClusterJob& job = options.job;
  Sweep sweep;
  sweep.axes = axes_of(job.plan());
  const LegalPlans legal = legal_plans(job.plan(), sweep, environment);
  if (options.slurm.is_job()) {
    write_to_standard_output(options.slurm.write_job(app, job));
    return ExitCode::kDone;
  }
  const ManyPlans how{.job = job.rank_job(environment),
                      .calibration_of = [&](const Plan& plan) { return job.calibration_of(plan); }};
  if (const std::optional<Part> part = options.slurm.part(job)) {
    write_to_standard_output(run_part_of_plans(legal.plans, how, *part, environment));
    return ExitCode::kDone;
  }
  execute(legal, how, environment, sweep);
  if (!options.output.empty()) {
    estimator::write_file_whole(options.output, estimator::document_text(sweep));
  }
  if (options.html.is_given()) {
    const Page page = sweep_page(legal.plans, sweep);
    options.html.write(page);
  }
  write_to_standard_output(sweep_text(sweep, style));
  return ExitCode::kDone;
}

}  // namespace

Command add_sweep_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "sweep", "all combinations of several values of flags (--tp 1,2,4), and how they scale");
  const auto options = std::make_shared<SweepOptions>();
  options->format.add_to(*app);
  options->html.add_to(*app);
  app->add_option("--output", options->output, "write the sweep as JSON")
      ->type_name("FILE")
      ->group("Output");
  options->job.add_flags_for_many_plans_to(*app, /*takes_plan=*/true);
  options->slurm.add_to(*app);
  return {app, [options, app](const Environment& environment) {
            return run_sweep(*options, *app, environment);
          }};
}

}  // namespace sim
