#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/what_if/option_paths.h"
#include "estimator/what_if/search.h"
#include "sim/cli/commands/cluster_job.h"
#include "sim/cli/commands/commands.h"
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

using estimator::Composer;
using estimator::ExitCode;
using estimator::Fit;
using estimator::FoundLayout;
using estimator::Layout;
using estimator::Layouts;
using estimator::PieceRun;
using estimator::Plan;
using estimator::PlanSpec;
using estimator::Search;
using estimator::UserError;
using Clock = std::chrono::steady_clock;

struct SearchOptions {
  ClusterJob job;
  SlurmOptions slurm;
  TableFormatFlag format;
  std::string output;
  std::string html;
  std::string max_gpus;
  std::string top = "5";
  std::string check;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whole machines, twice as many each time, and at last the most.
std::vector<int64_t> worlds_up_to(int64_t most, int64_t machine) {
  std::vector<int64_t> worlds;
  for (int64_t gpus = std::min(machine, most); gpus < most; gpus *= 2) worlds.push_back(gpus);
  worlds.push_back(most);
  return worlds;
}

std::vector<int64_t> worlds_of(const SearchOptions& options, const PlanSpec& spec) {
  const int64_t machine = estimator::gpus_of_machine(spec);
  if (!options.max_gpus.empty()) {
    return worlds_up_to(parse_positive_number(options.max_gpus, "--max-gpus"), machine);
  }
  if (spec.context.world_size) return {*spec.context.world_size};
  const estimator::Json nodes = spec.said("cluster.nodes");
  if (nodes.is_number_integer()) return {nodes.get<int64_t>() * machine};
  throw UserError({.what = "the number of GPUs is not given",
                   .where = spec.context.origin,
                   .help = "give --gpus N, or --max-gpus N to search fewer ones too"});
}

/// Layouts that are composed from the same pieces.
struct Family {
  std::vector<Layout*> layouts;
  std::vector<PieceRun> runs;
};

std::string key_beside_micro_batch(const Family& family) {
  Layout layout = *family.layouts.front();
  std::erase_if(layout.edits, [](const estimator::PlanEdit& edit) {
    return edit.path == "training.micro_batch_size";
  });
  return estimator::quick_pieces_key(layout);
}

bool may_fit(const Family& family) {
  return std::any_of(family.layouts.begin(), family.layouts.end(), [](const Layout* layout) {
    return layout->composed && layout->composed->may_fit;
  });
}

class Searcher {
 public:
  Searcher(const SearchOptions& options, const Environment& environment)
      : options_(options), environment_(environment) {}

  /// Composes the layouts of all worlds; of a part of the work, those of every `count`th group of
  /// families that differ in the micro-batch alone.
  void compose(std::vector<Layouts>& worlds, const Part& part, Search& search) {
    std::map<std::string, Family> families = families_of(worlds, search.capacity_bytes);
    std::map<std::string, int64_t> groups;
    for (const auto& [key, family] : families) groups.emplace(key_beside_micro_batch(family), 0);
    int64_t number = 0;
    for (auto& [key, of_group] : groups) of_group = number++;
    std::erase_if(families, [&](const auto& entry) {
      return !part.has(groups.at(key_beside_micro_batch(entry.second)));
    });
    std::map<int64_t, std::vector<Family*>> by_micro_batch;
    for (auto& [key, family] : families) {
      by_micro_batch[family.layouts.front()->plan.training.micro_batch_size].push_back(&family);
    }
    // Where no layout of a family fits, none fits with larger micro-batches.
    std::set<std::string> hopeless;
    for (auto& [size, of_size] : by_micro_batch) {
      std::erase_if(of_size, [&](const Family* family) {
        return hopeless.contains(key_beside_micro_batch(*family));
      });
      compose_families(of_size, search);
      for (const Family* family : of_size) {
        if (!may_fit(*family)) hopeless.insert(key_beside_micro_batch(*family));
      }
    }
    if (search.pieces_run == 0 || has_composed_) return;
    throw UserError({.what = "no layout can be composed: its pieces cannot be executed",
                     .where = first_refusal_,
                     .help = "see `onerank run` of one layout"});
  }

 private:
  static std::map<std::string, Family> families_of(std::vector<Layouts>& worlds,
                                                   int64_t capacity_bytes) {
    std::map<std::string, Family> families;
    for (Layouts& world : worlds) {
      for (Layout& layout : world.allowed) {
        if (estimator::least_bytes(layout.plan) > capacity_bytes) continue;
        families[estimator::quick_pieces_key(layout)].layouts.push_back(&layout);
      }
    }
    return families;
  }

  void compose_families(const std::vector<Family*>& families, Search& search) {
    if (families.empty()) return;
    const auto start = Clock::now();
    for (Family* family : families) family->runs = runs_of(*family);
    std::vector<RanksAnswer> answers = execute(families, search);
    search.execute_seconds += seconds_since(start);
    const auto composing = Clock::now();
    auto answer = answers.begin();
    for (Family* family : families) {
      std::vector<estimator::RankProfile> profiles;
      for (std::size_t i = 0; i < family->runs.size(); ++i, ++answer) {
        if (answer->refusal.empty()) profiles.push_back(std::move(answer->profiles.front()));
        if (first_refusal_.empty()) first_refusal_ = answer->refusal;
      }
      if (profiles.size() < family->runs.size()) continue;
      has_composed_ = true;
      const auto rates = options_.job.calibration_of(family->layouts.front()->plan);
      Composer composer(std::move(family->runs), std::move(profiles), rates ? &*rates : nullptr);
      for (Layout* layout : family->layouts) layout->composed = composer.compose(layout->plan);
    }
    search.compose_seconds += seconds_since(composing);
  }

  static std::vector<PieceRun> runs_of(const Family& family) {
    const Plan& plan = family.layouts.front()->plan;
    const std::string obstacle = estimator::obstacle_to_composition(plan);
    if (obstacle.empty()) return estimator::piece_runs(plan);
    throw UserError({.what = "layouts of this plan cannot be composed: " + obstacle,
                     .where = plan.name.empty() ? "the plan" : plan.name,
                     .help = "use `onerank sweep`, which executes every layout whole"});
  }

  std::vector<RanksAnswer> execute(const std::vector<Family*>& families, Search& search) {
    std::vector<RanksOfPlan> ranks;
    for (const Family* family : families) {
      for (const PieceRun& run : family->runs) ranks.push_back({&run.plan, {run.rank}});
    }
    search.pieces_run += static_cast<int64_t>(ranks.size());
    RankJob job = options_.job.rank_job(environment_);
    job.attribute_memory = false;
    job.lift_limit = true;
    Progress progress("executing pieces",
                      static_cast<int64_t>(ranks.size()),
                      standard_error_display(),
                      Progress::Clock::now());
    return run_ranks_of_plans(ranks, job, environment_, progress);
  }

  const SearchOptions& options_;
  const Environment& environment_;
  bool has_composed_ = false;
  std::string first_refusal_;  ///< of a piece
};

std::optional<double> price_of(const Plan& plan) { return plan.cluster.usd_per_gpu_hour; }

void summarise(const std::vector<int64_t>& gpus,
               const std::vector<Layouts>& worlds,
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
    if (leanest) summary.leanest = found_layout(*leanest, price_of(leanest->plan));
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

FoundLayout with_executed(const Layout& layout, const PlanAnswer& answer) {
  FoundLayout found = found_layout(layout, price_of(layout.plan));
  if (answer.estimate) add_executed(*answer.estimate, found);
  return found;
}

/// The `top` fastest layouts that fit when they are executed whole. What the allocator loses is not
/// exact in a composed layout, so all whose allocated bytes fit are candidates.
std::vector<FoundLayout> best_of(const std::vector<const Layout*>& candidates,
                                 std::size_t top,
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
      FoundLayout found = with_executed(*batch[i], answers[i]);
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
    if (answers[i].estimate) checked.push_back(with_executed(*layouts[i], answers[i]));
  }
  return checked;
}

/// What all layouts have that nobody asked for.
std::string unsaid_text(const estimator::PlanSpec& spec, const Plan& plan) {
  const bool divides_state = plan.parallelism.zero_stage > 0;
  if (divides_state || spec.says(estimator::paths::kZeroStage)) return "";
  return "note: every data rank of these layouts has all of the optimizer's state (ZeRO stage 0); "
         "--use-distributed-optimizer searches layouts that divide it\n";
}

ExitCode run_search(const SearchOptions& options,
                    const CLI::App& app,
                    const Environment& environment) {
  const ReportStyle style = style_for_output(options.format.format());
  check_writable_document(options.output, "--output");
  check_writable(options.html, "--html");
  const auto top = static_cast<std::size_t>(parse_whole_number(options.top, "--top"));
  const PlanInput input = options.job.plan().said(environment);
  const std::vector<int64_t> gpus = worlds_of(options, input.spec);
  std::vector<Layouts> worlds;
  worlds.reserve(gpus.size());
  for (const int64_t world : gpus) {
    worlds.push_back(
        estimator::allowed_layouts(input.spec, estimator::search_axes(input.spec, world), world));
  }
  const Plan searched = estimator::searched_plan(input.spec);
  write_to_standard_error(unsaid_text(input.spec, searched));
  Search search;
  search.capacity_bytes = gpu_of(searched.cluster).memory_bytes;
  if (options.slurm.is_job()) {
    write_to_standard_output(options.slurm.write_job(app, options.job));
    return ExitCode::kDone;
  }
  const std::optional<Part> part = options.slurm.part(options.job);
  Searcher(options, environment).compose(worlds, part.value_or(Part{}), search);
  if (part) {
    write_to_standard_output(part_text(*part, search.pieces_run));
    return ExitCode::kDone;
  }
  summarise(gpus, worlds, search);
  const auto layouts = fastest(worlds, [](const estimator::ComposedPlan& composed) {
    return composed.outcome == Fit::kFits;
  });
  const auto candidates =
      fastest(worlds, [](const estimator::ComposedPlan& composed) { return composed.may_fit; });
  std::vector<FoundLayout> all;
  all.reserve(layouts.size());
  for (const Layout* layout : layouts) all.push_back(found_layout(*layout, price_of(layout->plan)));
  search.pareto = estimator::pareto_front(std::move(all));
  search.best = best_of(candidates, top, options, environment);
  search.checked = checked_layouts(worlds, options, environment);
  if (!options.output.empty()) {
    estimator::write_file_whole(options.output, estimator::document_text(search));
  }
  if (!options.html.empty()) {
    const Page page = search_page(searched, search);
    estimator::write_file_whole(options.html, page_html(page));
  }
  write_to_standard_output(search_text(search, style));
  return layouts.empty() ? ExitCode::kVerdictIsNo : ExitCode::kDone;
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
  options->format.add_to(*app);
  app->add_option("--html", options->html, "write the report as one HTML file: tables and pictures")
      ->type_name("FILE")
      ->group("Output");
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
