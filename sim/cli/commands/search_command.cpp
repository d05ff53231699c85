#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/what_if/search.h"
#include "sim/cli/commands/cluster_job.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/commands/layout_composer.h"
#include "sim/cli/commands/layout_description.h"
#include "sim/cli/commands/many_plans.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/commands/slurm_job.h"
#include "sim/cli/input/table_format.h"
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

/// Whole machines, twice as many each time, and at last the most.
std::vector<int64_t> worlds_up_to(int64_t most, int64_t machine) {
  std::vector<int64_t> worlds;
  for (int64_t gpus = std::min(machine, most); gpus < most; gpus *= 2) worlds.push_back(gpus);
  worlds.push_back(most);
  return worlds;
}

/// `gpus`, if a world may have so many.
int64_t checked_world(PlanSpec spec, int64_t gpus, const std::string& source) {
  spec.context.world_size = gpus;
  spec.context.world_size_origin = source;
  estimator::check_readable(spec.tree.json(), spec.context);
  return gpus;
}

/// Numbers of GPUs, each in the range of a world.
std::vector<int64_t> worlds_of(const SearchOptions& options, const PlanSpec& spec) {
  const int64_t machine = estimator::gpus_of_machine(spec);
  if (!options.max_gpus.empty()) {
    const int64_t most = parse_whole_number(options.max_gpus, "--max-gpus");
    return worlds_up_to(checked_world(spec, most, "--max-gpus"), machine);
  }
  for (const TypedValues& typed : options.job.plan().several_values()) {
    if (!typed.path.empty()) continue;
    std::vector<int64_t> worlds;
    for (const std::string& value : typed.values) {
      worlds.push_back(checked_world(spec, parse_whole_number(value, typed.flag), typed.flag));
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
    const std::vector<SearchAxis> axes = estimator::search_axes(spec, world, listed);
    worlds.push_back(estimator::allowed_layouts(spec, axes, world, seen));
  }
  return worlds;
}

void summarise(const std::vector<int64_t>& gpus,
               const std::vector<Layouts>& worlds,
               const LayoutDescription& description,
               Search& search) {
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    const Layouts& world = worlds[w];
    estimator::WorldSearch summary{
        .gpus = gpus[w],
        .layouts = static_cast<int64_t>(world.allowed.size()) + world.refused.sum(),
        .refused = world.refused.sum()};
    const Layout* leanest = nullptr;
    for (const Layout& layout : world.allowed) {
      if (!layout.composed) continue;
      summary.fits += layout.composed->outcome == Fit::kFits;
      summary.too_close += layout.composed->outcome == Fit::kTooClose;
      if (leanest == nullptr || layout.composed->peak_bytes < leanest->composed->peak_bytes) {
        leanest = &layout;
      }
    }
    if (leanest) summary.leanest = description.found(*leanest);
    if (summary.fits > 0 && !search.fewest_gpus) search.fewest_gpus = gpus[w];
    search.worlds.push_back(std::move(summary));
  }
}

/// The layouts that meet `wanted`, by ascending step time.
std::vector<const Layout*> fastest(const std::vector<Layouts>& worlds,
                                   bool (*wanted)(const estimator::ComposedPlan&)) {
  std::vector<const Layout*> layouts;
  for (const Layouts& world : worlds) {
    for (const Layout& layout : world.allowed) {
      if (layout.composed && wanted(*layout.composed)) layouts.push_back(&layout);
    }
  }
  std::stable_sort(layouts.begin(), layouts.end(), [](const Layout* a, const Layout* b) {
    return a->composed->time.iteration_seconds < b->composed->time.iteration_seconds;
  });
  return layouts;
}

std::vector<PlanAnswer> execute_whole(const std::vector<const Layout*>& layouts,
                                      const SearchOptions& options,
                                      const Environment& environment) {
  std::vector<Plan> plans;
  plans.reserve(layouts.size());
  for (const Layout* layout : layouts) plans.push_back(layout->plan);
  const ManyPlans how{
      .job = options.job.rank_job(environment),
      .calibration_of = [&](const Plan& plan) { return options.job.calibration_of(plan); },
      .progress = "executing the best layouts whole"};
  return estimate_plans(plans, how, environment);
}

FoundLayout with_executed(const Layout& layout,
                          const PlanAnswer& answer,
                          const LayoutDescription& description) {
  FoundLayout found = description.found(layout);
  if (answer.estimate) add_executed(*answer.estimate, found);
  return found;
}

/// The `top` fastest layouts that fit when they are executed whole. What the allocator loses is not
/// exact in a composed layout, so all whose allocated bytes fit are candidates.
std::vector<FoundLayout> best_of(const std::vector<const Layout*>& candidates,
                                 std::size_t top,
                                 const LayoutDescription& description,
                                 const SearchOptions& options,
                                 const Environment& environment) {
  constexpr std::size_t kMostTries = 6;
  std::vector<FoundLayout> best;
  auto next = candidates.begin();
  for (std::size_t tries = 0; tries < kMostTries && best.size() < top; ++tries) {
    std::vector<const Layout*> batch;
    for (; next != candidates.end() && batch.size() < top; ++next) batch.push_back(*next);
    if (batch.empty()) break;
    const std::vector<PlanAnswer> answers = execute_whole(batch, options, environment);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      FoundLayout found = with_executed(*batch[i], answers[i], description);
      if (found.executed_outcome == Fit::kFits) best.push_back(std::move(found));
    }
  }
  std::stable_sort(best.begin(), best.end(), [](const FoundLayout& a, const FoundLayout& b) {
    return *a.executed_iteration_seconds < *b.executed_iteration_seconds;
  });
  best.resize(std::min(best.size(), top));
  return best;
}

/// Layouts at random, executed whole; those that cannot be run are left out.
std::vector<FoundLayout> checked_layouts(const std::vector<Layouts>& worlds,
                                         const LayoutDescription& description,
                                         const SearchOptions& options,
                                         const Environment& environment) {
  if (options.check.empty()) return {};
  std::vector<const Layout*> layouts =
      fastest(worlds, [](const estimator::ComposedPlan&) { return true; });
  std::mt19937 random(1);  // the same sample each time
  std::shuffle(layouts.begin(), layouts.end(), random);
  const auto wanted = static_cast<std::size_t>(parse_positive_number(options.check, "--check"));
  layouts.resize(std::min(layouts.size(), wanted));
  const std::vector<PlanAnswer> answers = execute_whole(layouts, options, environment);
  std::vector<FoundLayout> checked;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (answers[i].estimate) checked.push_back(with_executed(*layouts[i], answers[i], description));
  }
  return checked;
}

std::size_t top_of(const SearchOptions& options) {
  return static_cast<std::size_t>(parse_positive_number(options.top, "--top"));
}

/// The best layouts as they were composed, for a search that was interrupted.
std::vector<FoundLayout> best_composed(const std::vector<FoundLayout>& fitting, std::size_t top) {
  return {fitting.begin(), fitting.begin() + static_cast<int64_t>(std::min(top, fitting.size()))};
}

/// The best layouts and those of --check, executed whole.
void execute_found(const std::vector<Layouts>& worlds,
                   const LayoutDescription& description,
                   const SearchOptions& options,
                   const Environment& environment,
                   Search& search) {
  const auto candidates =
      fastest(worlds, [](const estimator::ComposedPlan& composed) { return composed.may_fit; });
  search.best = best_of(candidates, top_of(options), description, options, environment);
  search.checked = checked_layouts(worlds, description, options, environment);
}

/// Fills in what was found; what is fitting and composed, where it is interrupted.
void report_found(const std::vector<Layouts>& worlds,
                  const LayoutDescription& description,
                  const SearchOptions& options,
                  const Environment& environment,
                  Search& search) {
  std::vector<FoundLayout> fitting;
  for (const Layout* layout : fastest(worlds, [](const estimator::ComposedPlan& composed) {
         return composed.outcome == Fit::kFits;
       })) {
    fitting.push_back(description.found(*layout));
  }
  search.pareto = estimator::pareto_front(fitting);
  try {
    if (!search.interrupted)
      return execute_found(worlds, description, options, environment, search);
  } catch (const UserError& error) {
    if (error.exit_code() != ExitCode::kInterrupted) throw;
    search.interrupted = true;
  }
  if (!search.best.empty()) return;
  search.best = best_composed(fitting, top_of(options));
}

ExitCode exit_code_of(const Search& search) {
  if (search.interrupted) return ExitCode::kInterrupted;
  const bool fits = std::any_of(
      search.worlds.begin(), search.worlds.end(), [](const auto& world) { return world.fits > 0; });
  return fits ? ExitCode::kDone : ExitCode::kVerdictIsNo;
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
  std::vector<Layouts> worlds = allowed_in(gpus, listed, input.spec);
  const Plan searched = estimator::searched_plan(input.spec);
  Search search;
  search.capacity_bytes = gpu_of(searched.cluster).memory_bytes;
  if (options.slurm.is_job()) {
    write_to_standard_output(options.slurm.write_job(app, options.job));
    return ExitCode::kDone;
  }
  const std::optional<Part> part = options.slurm.part(options.job);
  // A part and a sample are of all layouts.
  const ComposeOptions how{.part = part.value_or(Part{}),
                           .best = top_of(options),
                           .all = options.all || part || !options.check.empty()};
  LayoutComposer(options.job, environment).compose(worlds, how, search);
  if (search.interrupted && (part || search.layouts_composed == 0)) {
    throw UserError({"interrupted", "", ""}, ExitCode::kInterrupted);
  }
  if (part) {
    write_to_standard_output(part_text(*part, search.pieces_run));
    return ExitCode::kDone;
  }
  const LayoutDescription description(said, app);
  summarise(gpus, worlds, description, search);
  report_found(worlds, description, options, environment, search);
  if (!options.output.empty()) {
    estimator::write_file_whole(options.output, estimator::document_text(search));
  }
  if (options.html.is_given()) {
    const Page page = search_page(searched, search);
    options.html.write(page);
  }
  write_to_standard_output(search_text(search, style));
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
