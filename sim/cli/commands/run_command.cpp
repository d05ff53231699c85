#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/hardware/hardware.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/input/rank_options.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/page/rank_page.h"
#include "sim/cli/process/output.h"
#include "sim/cli/process/terminal.h"
#include "sim/cli/report/memory_picture.h"
#include "sim/cli/report/module_report.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/profile_report.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::RankProfile;

struct RunOptions {
  PlanOptions plan;
  RankOptions ranks;
  std::string rank;
  std::string output;
  HtmlFlag html;
  TableFormatFlag format;
  bool modules = false;
  bool drill_down = false;
  std::string depth;
};

bool wants_modules(const RunOptions& options) {
  return options.modules || options.drill_down || !options.depth.empty();
}

/// The table that was asked for, or "".
std::string modules_text(const RunOptions& options, const RankProfile& profile) {
  if (!wants_modules(options)) return "";
  return "\n" +
         module_text(profile.modules, module_table_options(options.drill_down, options.depth));
}

/// In Markdown or CSV.
std::string tables_text(const RunOptions& options,
                        const RankProfile& profile,
                        const ReportStyle& style) {
  std::vector<TitledTable> tables = profile_tables(profile);
  if (wants_modules(options)) {
    tables.push_back(
        module_table(profile.modules, module_table_options(options.drill_down, options.depth)));
  }
  return tables_in(tables, style);
}

/// The rank to run, and who says so.
struct ChosenRank {
  int64_t rank = 0;
  std::string origin = "the default";
};

ChosenRank choose_rank(const std::string& flag,
                       const Environment& environment,
                       const PlanInput& input) {
  ChosenRank chosen;
  if (!flag.empty()) {
    chosen = {parse_whole_number(flag, "--rank"), "--rank"};
  } else if (const auto variable = find_variable(environment, kRankVariable)) {
    chosen = {parse_whole_number(*variable, kRankVariable), kRankVariable};
  }
  const int64_t world_size = input.plan.world_size();
  if (chosen.rank < 0 || chosen.rank >= world_size) {
    throw estimator::UserError({.what = "the rank is not in the world",
                                .where = fmt::format("{} = {}, world size {} (from {})",
                                                     chosen.origin,
                                                     chosen.rank,
                                                     world_size,
                                                     input.world_size_origin),
                                .help = fmt::format("use a rank from 0 to {}", world_size - 1)});
  }
  return chosen;
}

std::string setting_text(const PlanInput& input,
                         const ChosenRank& chosen,
                         const RankProfile& profile) {
  return fmt::format("{}, rank {} (from {}); device {} {}\n",
                     world_text(input),
                     chosen.rank,
                     chosen.origin,
                     estimator::to_string(profile.device.kind),
                     profile.device.name) +
         input_lines(input);
}

/// Drawn where its file was asked for.
std::string picture_text(const RankJob& job) {
  const std::string& timeline = job.memory_files[kTimeline];
  return timeline.empty() ? ""
                          : "\n" + memory_picture(read_memory_timeline(timeline), output_columns());
}

ExitCode run_rank(const RunOptions& options, const Environment& environment) {
  check_writable_document(options.output, "--output");
  options.html.check();
  module_table_options(options.drill_down, options.depth);  // refuses before the run
  const ReportStyle style = style_for_output(options.format.format());
  const PlanInput input = options.plan.resolve(environment);
  const ChosenRank chosen = choose_rank(options.rank, environment, input);
  RankJob job = options.ranks.job({chosen.rank}, environment);
  std::optional<DetailFiles> detail;
  if (options.html.is_given()) {
    detail.emplace(job.memory_files);
    job.memory_files = detail->paths();
    job.attribute_memory = true;
  }
  const RankProfile profile =
      run_ranks(input.plan, job, environment, standard_error_display()).front();

  const std::string json = estimator::document_text(profile);
  if (!options.output.empty()) estimator::write_file_whole(options.output, json);
  if (detail) {
    const Page page = rank_page(input,
                                profile,
                                detail->read(chosen.rank, 1),
                                estimator::find_gpu(input.plan.cluster.gpu)->memory_bytes);
    options.html.write(page);
  }
  const std::string setting = setting_text(input, chosen, profile);
  if (style.format == TableFormat::kJson) {
    write_to_standard_error(setting);
    write_to_standard_output(json);
  } else if (style.format != TableFormat::kText) {
    write_to_standard_error(setting);
    write_to_standard_output(tables_text(options, profile, style));
  } else {
    write_to_standard_output(setting + profile_text(profile) + modules_text(options, profile) +
                             picture_text(options.ranks.job({chosen.rank}, environment)));
  }
  return ExitCode::kDone;
}

}  // namespace

Command add_run_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("run", "run one rank: its phases, peak and profile");
  const auto options = std::make_shared<RunOptions>();
  app->add_option("--rank", options->rank, "the rank to run (or RANK; default 0)")
      ->type_name("N")
      ->group("Execution");
  options->format.add_to(*app);
  app->add_option("--output", options->output, "write the profile as JSON")
      ->type_name("FILE")
      ->group("Output");
  options->html.add_to(*app);
  app->add_flag("--modules", options->modules, "print memory by module, layers as `layers.*`")
      ->group("Output");
  app->add_flag(
         "--drill-down", options->drill_down, "print memory by module, with each layer separately")
      ->group("Output");
  app->add_option("--depth", options->depth, "print memory by module, down to this level")
      ->type_name("N")
      ->group("Output");
  options->plan.add_to(*app);
  options->ranks.add_to(*app);
  options->ranks.add_memory_flags_to(*app);
  return {app,
          [options](const Environment& environment) { return run_rank(*options, environment); }};
}

}  // namespace sim
