#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/least_bytes.h"
#include "estimator/what_if/search_result.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/jobs/many_plans.h"
#include "sim/cli/jobs/slurm_job.h"
#include "sim/cli/layouts/layout_composer.h"
#include "sim/cli/layouts/layout_description.h"
#include "sim/cli/layouts/layout_execution.h"
#include "sim/cli/page/comparison_page.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/search_report.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Fit;
using estimator::FoundLayout;
using estimator::Layout;
using estimator::Layouts;
using estimator::Plan;
using estimator::PlanSpec;
using estimator::Search;
using estimator::SearchAxis;
using estimator::UserError;

struct SearchOptions {
  ClusterJob job;
  SlurmOptions slurm;
  TableFormatFlag format;
  std::string output;
  HtmlFlag html;
  std::string max_gpus;
  std::string top = "5";
  std::string check;
  bool all = false;
};

/// The same command line with the first value of each flag that has several.
PlanOptions first_of_each(const PlanOptions& said) {
  std::vector<TypedChoice> choices;
  for (const TypedValues& typed : said.several_values()) {
    choices.push_back({typed.flag, typed.values.front()});
  }
  return said.with(choices);
}

/// Whole machines, twice as many each time, and at last the most; a part of one machine, where that
/// is the most.
std::vector<int64_t> worlds_up_to(int64_t most, int64_t machine) {
  const int64_t whole = most < machine ? most : most / machine * machine;
  std::vector<int64_t> worlds;
  for (int64_t gpus = machine; gpus < whole; gpus *= 2) worlds.push_back(gpus);
  worlds.push_back(whole);
  if (whole < most) {
    write_to_standard_error(
        fmt::format("note: --max-gpus {} is not a whole number of machines of {} GPUs; up to {} "
                    "GPUs are searched\n",
                    most,
                    machine,
                    whole));
  }
  return worlds;
}

/// `gpus`, if a world may have so many.
int64_t checked_world(PlanSpec spec, int64_t gpus, const std::string& source) {
  spec.context.world_size = gpus;
  spec.context.world_size_origin = source;
  estimator::check_readable(spec.tree.json(), spec.context);
  return gpus;
}

/// The values of --gpus 8,16; empty where it has not several.
const TypedValues* listed_worlds(const std::vector<TypedValues>& several) {
  const auto found = std::find_if(
      several.begin(), several.end(), [](const TypedValues& typed) { return typed.path.empty(); });
  return found == several.end() ? nullptr : &*found;
}

void refuse_two_numbers_of_gpus(const SearchOptions& options) {
  const std::string& gpus = options.job.plan().typed_gpus();
  if (options.max_gpus.empty() || gpus.empty()) return;
  throw UserError({.what = "the number of GPUs is given twice",
                   .where = fmt::format("--max-gpus {} and --gpus {}", options.max_gpus, gpus),
                   .help = "give --gpus N to search this number alone, or --max-gpus N to search "
                           "fewer ones too"});
}

/// Numbers of GPUs as they were given, each in the range of a world.
std::vector<int64_t> given_worlds(const SearchOptions& options, const PlanSpec& spec) {
  const int64_t machine = estimator::gpus_of_machine(spec);
  if (!options.max_gpus.empty()) {
    const int64_t most = parse_whole_number(options.max_gpus, "--max-gpus");
    return worlds_up_to(checked_world(spec, most, "--max-gpus"), machine);
  }
  const std::vector<TypedValues> several = options.job.plan().several_values();
  if (const TypedValues* typed = listed_worlds(several)) {
    std::vector<int64_t> worlds;
    for (const std::string& value : typed->values) {
      worlds.push_back(checked_world(spec, parse_whole_number(value, typed->flag), typed->flag));
    }
    return worlds;
  }
  if (spec.context.world_size) return {*spec.context.world_size};
  const estimator::Json nodes = spec.said("cluster.nodes");
  if (nodes.is_number_integer()) {
    return {checked_world(spec, nodes.get<int64_t>() * machine, "nodes x GPUs of each")};
  }
  throw UserError({.what = "the number of GPUs is not given",
                   .where = spec.context.origin,
                   .help = "give --gpus N, or --max-gpus N to search fewer ones too"});
}

/// The same, ascending, and each once.
std::vector<int64_t> worlds_of(const SearchOptions& options, const PlanSpec& spec) {
  refuse_two_numbers_of_gpus(options);
  std::vector<int64_t> worlds = given_worlds(options, spec);
  std::sort(worlds.begin(), worlds.end());
  worlds.erase(std::unique(worlds.begin(), worlds.end()), worlds.end());
  return worlds;
}

/// The axes whose values the user listed behind a flag of the plan, --tp 4,8.
std::vector<SearchAxis> listed_axes(const PlanOptions& said, const Environment& environment) {
  std::vector<SearchAxis> axes;
  for (const TypedValues& typed : said.several_values()) {
    if (typed.path.empty()) continue;  // the number of GPUs
    SearchAxis& axis = axes.emplace_back(SearchAxis{.path = typed.path, .values = {}});
    for (const std::string& value : typed.values) {
      const PlanOptions one = first_of_each(said).with({{typed.flag, value}});
      axis.values.push_back(one.said(environment).spec.said(typed.path));
    }
  }
  return axes;
}

/// The layouts of each number of GPUs.
std::vector<Layouts> allowed_in(const std::vector<int64_t>& gpus,
                                const std::vector<SearchAxis>& listed,
                                const PlanSpec& spec) {
  std::vector<Layouts> worlds;
  worlds.reserve(gpus.size());
  for (const int64_t world : gpus) {
    Progress progress("listing layouts", 0, standard_error_display(), Progress::Clock::now());
    const auto seen = [&progress](int64_t all) {
      progress.set_total(all);
      progress.count_one();
      progress.update(Progress::Clock::now());
    };
    worlds.push_back(estimator::searched_layouts(spec, listed, world, seen));
  }
  return worlds;
}

std::size_t top_of(const SearchOptions& options) {
  return static_cast<std::size_t>(parse_positive_number(options.top, "--top"));
}

bool fits(const Layout& layout) { return layout.outcome() == Fit::kFits; }

/// The best layouts and those of --check, executed whole, and what tells the fewest GPUs.
void execute_found(std::vector<Layouts>& worlds,
                   const LayoutDescription& description,
                   const SearchOptions& options,
                   const Environment& environment,
                   Search& search) {
  const LayoutExecution execution(options.job, environment);
  execution.execute_fastest(worlds, top_of(options));
  execution.execute_leanest(worlds);
  if (options.check.empty()) return;
  const auto wanted = static_cast<std::size_t>(parse_positive_number(options.check, "--check"));
  for (const Layout* layout : execution.execute_sample(worlds, wanted)) {
    search.checked.push_back(description.executed(*layout));
  }
}

/// The fastest that were seen to fit; in a search that was interrupted before one was, the fastest
/// that were composed.
std::vector<FoundLayout> best_of(std::vector<Layouts>& worlds,
                                 const LayoutDescription& description,
                                 std::size_t top,
                                 bool interrupted) {
  std::vector<Layout*> layouts = fastest_seen_to_fit(worlds, top);
  if (layouts.empty() && interrupted) layouts = by_speed(worlds, fits);
  layouts.resize(std::min(layouts.size(), top));
  std::vector<FoundLayout> best;
  best.reserve(layouts.size());
  for (const Layout* layout : layouts) best.push_back(description.executed(*layout));
  return best;
}

void summarise(const std::vector<int64_t>& gpus,
               const std::vector<Layouts>& worlds,
               const LayoutDescription& description,
               Search& search) {
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    estimator::WorldSearch summary = estimator::world_search(gpus[w], worlds[w]);
    if (const Layout* leanest = estimator::leanest_of(worlds[w])) {
      summary.leanest = description.executed(*leanest);
    }
    const bool holds = search.interrupted ? summary.fits > 0 : estimator::holds(worlds[w]);
    if (holds && !search.fewest_gpus) search.fewest_gpus = gpus[w];
    search.worlds.push_back(std::move(summary));
  }
}

/// Fills in what was found; what is fitting and composed, where it is interrupted.
void report_found(const std::vector<int64_t>& gpus,
                  std::vector<Layouts>& worlds,
                  const LayoutDescription& description,
                  const SearchOptions& options,
                  const Environment& environment,
                  Search& search) {
  try {
    if (!search.interrupted) execute_found(worlds, description, options, environment, search);
  } catch (const UserError& error) {
    if (error.exit_code() != ExitCode::kInterrupted) throw;
    search.interrupted = true;
  }
  summarise(gpus, worlds, description, search);
  search.best = best_of(worlds, description, top_of(options), search.interrupted);
  if (!search.interrupted) search.faster_untried = count_faster_untried(worlds, top_of(options));
  std::vector<FoundLayout> fitting;
  for (const Layout* layout : by_speed(worlds, fits)) fitting.push_back(description.found(*layout));
  search.pareto = estimator::pareto_front(fitting);
}

/// Where the model's state alone is too large for each layout: how many GPUs it needs, as the ranks
/// of the layout tell that needs least. Else "".
std::string lacking_gpus(const std::vector<Layouts>& worlds,
                         const Search& search,
                         const SearchOptions& options,
                         const PlanInput& said,
                         const Environment& environment) {
  int64_t allowed = 0;
  for (const Layouts& world : worlds) allowed += std::ssize(world.allowed);
  const std::vector<Layout>& layouts = worlds.back().allowed;
  if (layouts.empty() || search.layouts_too_large < allowed) return "";
  const auto leanest =
      std::min_element(layouts.begin(), layouts.end(), [](const Layout& a, const Layout& b) {
        return estimator::least_bytes(a.plan) < estimator::least_bytes(b.plan);
      });
  const ManyPlans how{
      .job = options.job.rank_job(environment),
      .calibration_of = [&](const Plan& plan) { return options.job.calibration_of(plan); }};
  const PlanAnswer answer = estimate_plans({leanest->plan}, how, environment).front();
  if (!answer.estimate) return "";
  ClusterResult result{.input = said, .estimate = *answer.estimate};
  result.input.plan = leanest->plan;
  const std::string text = result.lacking_gpus();
  return text.empty() ? "" : "\n" + text;
}

ExitCode exit_code_of(const Search& search) {
  if (search.interrupted) return ExitCode::kInterrupted;
  return search.fewest_gpus ? ExitCode::kDone : ExitCode::kVerdictIsNo;
}

ExitCode run_search(const SearchOptions& options,
                    const CLI::App& app,
                    const Environment& environment) {
  const ReportStyle style = style_for_output(options.format.format());
  check_writable_document(options.output, "--output");
  options.html.check();
  top_of(options);
  const PlanOptions& said = options.job.plan();
  const PlanInput input = first_of_each(said).said(environment);
  const std::vector<SearchAxis> listed = listed_axes(said, environment);
  const std::vector<int64_t> gpus = worlds_of(options, input.spec);
  const std::vector<Plan> searched = estimator::searched_plans(input.spec, listed);
  std::vector<Layouts> worlds = allowed_in(gpus, listed, input.spec);
  Search search;
  for (const Plan& plan : searched) {
    search.capacity_bytes = std::max(search.capacity_bytes, gpu_of(plan.cluster).memory_bytes);
  }
  if (options.slurm.is_job()) {
    write_to_standard_output(options.slurm.write_job(app, options.job));
    return ExitCode::kDone;
  }
  const std::optional<Part> part = options.slurm.part(options.job);
  // A part and a sample are of all layouts.
  const ComposeOptions how{.part = part.value_or(Part{}),
                           .best = top_of(options),
                           .all = options.all || part || !options.check.empty(),
                           .all_times = !options.check.empty()};
  LayoutComposer(options.job, environment).compose(worlds, how, search);
  if (search.interrupted && (part || search.layouts_composed == 0)) {
    throw UserError({"interrupted", "", ""}, ExitCode::kInterrupted);
  }
  if (part) {
    write_to_standard_output(part_text(*part, search.pieces_run));
    return ExitCode::kDone;
  }
  const LayoutDescription description(said, app);
  report_found(gpus, worlds, description, options, environment, search);
  if (!options.output.empty()) {
    estimator::write_file_whole(options.output, estimator::document_text(search));
  }
  if (options.html.is_given()) {
    const Page page = search_page(searched, search);
    options.html.write(page);
  }
  write_to_standard_output(search_text(search, style));
  if (style.format == TableFormat::kText) {
    write_to_standard_output(lacking_gpus(worlds, search, options, input, environment));
  }
  return exit_code_of(search);
}

}  // namespace

Command add_search_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "search", "the fastest layouts on a number of GPUs, and the fewest GPUs that hold the model");
  const auto options = std::make_shared<SearchOptions>();
  app->add_option("--max-gpus",
                  options->max_gpus,
                  "search whole machines, twice as many each time, up to N GPUs; --gpus searches "
                  "this number alone")
      ->type_name("N")
      ->group("Search");
  app->add_option("--top", options->top, "execute the N fastest layouts whole (default: 5)")
      ->type_name("N")
      ->group("Search");
  app->add_option("--check",
                  options->check,
                  "execute N layouts at random too, and show how far the composed figures are off")
      ->type_name("N")
      ->group("Search");
  app->add_flag("--all",
                options->all,
                "compose every layout, also those that are surely slower than the best, where "
                "there are many")
      ->group("Search");
  options->format.add_to(*app);
  options->html.add_to(*app);
  app->add_option("--output", options->output, "write the search as JSON")
      ->type_name("FILE")
      ->group("Output");
  options->job.add_flags_for_many_plans_to(*app, /*takes_plan=*/true);
  options->slurm.add_to(*app);
  return {app, [options, app](const Environment& environment) {
            return run_search(*options, *app, environment);
          }};
}

}  // namespace sim
