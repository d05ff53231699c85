#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <array>
#include <filesystem>
#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/plan_file.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/jobs/many_plans.h"
#include "sim/cli/page/comparison_page.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/diff_report.h"

namespace sim {
namespace {

using estimator::ClusterEstimate;
using estimator::ExitCode;
using estimator::Json;
using estimator::Plan;
using estimator::UserError;

constexpr const char* kWriteEstimates = "write it with `onerank estimate --output`";

struct DiffOptions {
  ClusterJob job;
  TableFormatFlag format;
  std::vector<std::string> files;
  HtmlFlag html;
};

/// One of the two that are compared: a plan to be run, or an estimate that was made before.
struct Side {
  std::string name;
  PlanOptions said;
  std::optional<ClusterEstimate> written;
};

/// The estimate in the file, if it is one; a plan is told by not being one. Who reads plans says
/// what is wrong with a file that is not there.
std::optional<ClusterEstimate> written_estimate(const std::string& named) {
  const std::string path = file_meant_by(named);
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return std::nullopt;
  const std::string text = estimator::read_file(path);
  const Json json = Json::parse(text, nullptr, false);
  const bool is_estimate =
      json.is_object() && json.value("kind", Json()) == ClusterEstimate{}.head.kind;
  if (!is_estimate) return std::nullopt;
  return estimator::read_written<ClusterEstimate>(text, path, kWriteEstimates);
}

Side side_of_file(const DiffOptions& options, const std::string& path) {
  return {
      .name = path, .said = options.job.plan().of_file(path), .written = written_estimate(path)};
}

[[noreturn]] void refuse_operands(const std::string& where) {
  throw UserError({.what = "two plans, or two values of each of some flags, are needed",
                   .where = where,
                   .help = "write onerank diff A B, or onerank diff PLAN --tp 2,4"});
}

/// The two plans that a file, if one is given, and flags with two values each mean.
std::array<Side, 2> sides_of_values(const DiffOptions& options) {
  PlanOptions said = options.job.plan();
  if (!options.files.empty()) said = said.of_file(options.files.front());
  const std::vector<TypedValues> several = said.several_values();
  if (several.empty()) refuse_operands("no flag has two values");
  std::array<Side, 2> sides;
  for (std::size_t s = 0; s < sides.size(); ++s) {
    std::vector<TypedChoice> choices;
    std::vector<std::string> names;
    for (const TypedValues& typed : several) {
      if (typed.values.size() != sides.size()) {
        refuse_operands(fmt::format("{} has {} values", typed.flag, typed.values.size()));
      }
      choices.push_back({typed.flag, typed.values[s]});
      names.push_back(typed.flag + " " + typed.values[s]);
    }
    sides[s] = {.name = fmt::format("{}", fmt::join(names, " ")),
                .said = said.with(choices),
                .written = std::nullopt};
  }
  return sides;
}

std::array<Side, 2> sides_of(const DiffOptions& options) {
  if (options.files.size() < 2) return sides_of_values(options);
  return {side_of_file(options, options.files[0]), side_of_file(options, options.files[1])};
}

/// Runs what is not written yet; equal ranks of both plans run once.
std::array<NamedEstimate, 2> estimates_of(std::array<Side, 2> sides,
                                          const ClusterJob& job,
                                          const Environment& environment) {
  std::vector<Plan> plans;
  for (const Side& side : sides) {
    if (!side.written) plans.push_back(side.said.resolve(environment).plan);
  }
  const ManyPlans how{.job = job.rank_job(environment),
                      .calibration_of = [&](const Plan& plan) { return job.calibration_of(plan); }};
  std::vector<PlanAnswer> answers = estimate_plans(plans, how, environment);
  std::array<NamedEstimate, 2> estimates;
  auto answer = answers.begin();
  for (std::size_t s = 0; s < sides.size(); ++s) {
    estimates[s].name = sides[s].name;
    if (sides[s].written) {
      estimates[s].estimate = std::move(*sides[s].written);
      continue;
    }
    if (!answer->estimate) {
      throw UserError({.what = fmt::format("{} cannot be run", sides[s].name),
                       .where = answer->refusal,
                       .help = "see `onerank estimate` of it"});
    }
    estimates[s].estimate = std::move(*(answer++)->estimate);
  }
  return estimates;
}

ExitCode run_diff(const DiffOptions& options, const Environment& environment) {
  const ReportStyle style = style_for_output(options.format.format());
  options.html.check();
  const auto [first, second] = estimates_of(sides_of(options), options.job, environment);
  const EstimateDiff diff = diff_of(first, second);
  if (options.html.is_given()) {
    options.html.write(diff_page(diff));
  }
  write_to_standard_output(diff_text(diff, style));
  return ExitCode::kDone;
}

}  // namespace

Command add_diff_command(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("diff", "two plans or two estimates: what differs, number by number");
  const auto options = std::make_shared<DiffOptions>();
  app->add_option(
         "PLANS",
         options->files,
         "two files or names of `list plans`: plans, files of other programs, or estimates "
         "(`estimate --output`); or one, and flags with two values each (--tp 2,4)")
      ->type_name("A B")
      ->expected(0, 2)
      ->group("Plan");
  options->format.add_to(*app);
  options->html.add_to(*app);
  options->job.add_flags_for_many_plans_to(*app, /*takes_plan=*/false);
  return {app,
          [options](const Environment& environment) { return run_diff(*options, environment); }};
}

}  // namespace sim
