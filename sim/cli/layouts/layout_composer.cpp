#include "sim/cli/layouts/layout_composer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <set>

#include "estimator/base/in_parallel.h"
#include "estimator/base/machine_share.h"
#include "sim/cli/layouts/fastest_layouts.h"
#include "sim/cli/process/interrupts.h"

namespace sim {
namespace {

using estimator::Composer;
using estimator::Layout;
using estimator::Layouts;
using estimator::PieceRun;
using estimator::Plan;
using estimator::RankProfile;
using estimator::Search;
using estimator::UserError;
using Clock = std::chrono::steady_clock;

/// Up to here all are executed; on two processors it takes about a minute.
constexpr int64_t kFewPieces = 800;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The place of each demand in an order in which what needs less comes first.
class Rounds {
 public:
  void add(const MemoryDemand& demand) {
    for (std::size_t i = 0; i < demand.size(); ++i) values_[i].insert(demand[i]);
  }
  std::ptrdiff_t of(const MemoryDemand& demand) const {
    std::ptrdiff_t round = 0;
    for (std::size_t i = 0; i < demand.size(); ++i) {
      round += std::distance(values_[i].begin(), values_[i].find(demand[i]));
    }
    return round;
  }

 private:
  std::array<std::set<int64_t>, std::tuple_size_v<MemoryDemand>> values_;
};

/// The families of a part of the work.
void keep_part(const Part& part, LayoutFamilies& families) {
  std::map<std::string, int64_t> groups;
  for (const auto& [key, family] : families) {
    groups.emplace(key_beside_demand(*family.layouts.front()), 0);
  }
  int64_t number = 0;
  for (auto& [key, of_group] : groups) of_group = number++;
  std::erase_if(families, [&](const auto& entry) {
    return !part.has(groups.at(key_beside_demand(*entry.second.layouts.front())));
  });
}

int64_t pieces_of(const LayoutFamilies& families) {
  int64_t pieces = 0;
  for (const auto& [key, family] : families) {
    pieces += estimator::number_of_pieces(family.layouts.front()->plan);
  }
  return pieces;
}

void refuse_obstacle(const Plan& plan) {
  const std::string obstacle = estimator::obstacle_to_composition(plan);
  if (obstacle.empty()) return;
  throw UserError({.what = "layouts of this plan cannot be composed: " + obstacle,
                   .where = plan.name.empty() ? "the plan" : plan.name,
                   .help = "use `onerank sweep`, which executes every layout whole"});
}

/// Before layouts are left out whose state is too large: least_bytes() knows only what can be
/// composed.
void refuse_obstacles(const std::vector<Layouts>& worlds) {
  for (const Layouts& world : worlds) {
    for (const Layout& layout : world.allowed) refuse_obstacle(layout.plan);
  }
}

/// Of each number of GPUs, the first of the composed layouts that need least memory.
std::set<const Layout*> leanest_of_worlds(const std::vector<Layout*>& layouts) {
  std::map<int64_t, const Layout*> leanest;
  for (const Layout* layout : layouts) {
    const Layout*& of_world = leanest.try_emplace(layout->plan.world_size(), layout).first->second;
    if (layout->peak_bytes() < of_world->peak_bytes()) of_world = layout;
  }
  std::set<const Layout*> all;
  for (const auto& [world, layout] : leanest) all.insert(layout);
  return all;
}

Progress progress_of(const char* what, std::size_t pieces) {
  return {what, static_cast<int64_t>(pieces), standard_error_display(), Progress::Clock::now()};
}

}  // namespace

void LayoutComposer::compose(std::vector<Layouts>& worlds,
                             const ComposeOptions& options,
                             Search& search) {
  refuse_obstacles(worlds);
  takes_all_times_ = options.all_times;
  LayoutFamilies families = families_of(worlds, search);
  keep_part(options.part, families);
  if (options.all || pieces_of(families) <= kFewPieces) {
    compose_by_demand(families, search);
  } else {
    takes_costs_ = true;
    FastestLayouts(families, options.best, search).compose(*this);
  }
  if (search.pieces_run == 0 || has_composed_ || search.interrupted) return;
  throw UserError({.what = "no layout can be composed: its pieces cannot be executed",
                   .where = first_refusal_,
                   .help = "see `onerank run` of one layout"});
}

void LayoutComposer::compose_by_demand(LayoutFamilies& families, Search& search) {
  Rounds rounds;
  for (const auto& [key, family] : families) rounds.add(demand_of(*family.layouts.front()));
  std::map<std::ptrdiff_t, std::vector<LayoutFamily*>> by_round;
  for (auto& [key, family] : families) {
    by_round[rounds.of(demand_of(*family.layouts.front()))].push_back(&family);
  }
  HopelessDemands hopeless;
  for (auto& [round, of_round] : by_round) {
    std::erase_if(of_round, [&](const LayoutFamily* family) {
      if (!hopeless.has(*family->layouts.front())) return false;
      search.layouts_hopeless += static_cast<int64_t>(family->layouts.size());
      return true;
    });
    Progress progress = progress_of("executing pieces", 0);
    int64_t pieces = 0;
    for (const LayoutFamily* family : of_round) {
      pieces += estimator::number_of_pieces(family->layouts.front()->plan);
    }
    progress.expect_more(pieces);
    compose_families(of_round, progress, search);
    if (search.interrupted) break;
    for (const LayoutFamily* family : of_round) {
      if (!may_fit(family->layouts)) hopeless.add(*family->layouts.front());
    }
  }
}

void LayoutComposer::compose_families(const std::vector<LayoutFamily*>& families,
                                      Progress& progress,
                                      Search& search) {
  std::vector<const PieceRun*> runs;
  for (LayoutFamily* family : families) {
    family->runs = estimator::piece_runs(family->layouts.front()->plan);
    for (const PieceRun& run : family->runs) runs.push_back(&run);
  }
  if (runs.empty()) return;
  std::vector<RanksAnswer> answers = execute(runs, progress, search);
  const auto composing = Clock::now();
  const Interrupts interrupts;
  std::vector<FamilyPieces> ready;
  auto answer = std::make_move_iterator(answers.begin());
  for (LayoutFamily* family : families) {
    const auto end = answer + static_cast<std::ptrdiff_t>(family->runs.size());
    if (auto pieces = gathered(*family, {answer, end})) ready.push_back(std::move(*pieces));
    answer = end;
  }
  estimator::for_each_in_parallel(ready.size(),
                                  estimator::machine_share().processors,
                                  [&](std::size_t i) { compose_family(ready[i]); });
  for (const FamilyPieces& pieces : ready) {
    search.layouts_composed += std::ssize(pieces.family->layouts);
  }
  has_composed_ = has_composed_ || !ready.empty();
  search.interrupted = interrupts.take_request_to_end() || search.interrupted;
  search.compose_seconds += seconds_since(composing);
}

std::optional<LayoutComposer::FamilyPieces> LayoutComposer::gathered(
    LayoutFamily& family, std::vector<RanksAnswer> answers) {
  FamilyPieces pieces{.family = &family,
                      .profiles = {},
                      .rates = job_.calibration_of(family.layouts.front()->plan)};
  for (RanksAnswer& answer : answers) {
    if (first_refusal_.empty()) first_refusal_ = answer.refusal;
    if (!answer.profiles.empty()) pieces.profiles.push_back(std::move(answer.profiles.front()));
  }
  if (pieces.profiles.size() < family.runs.size()) return std::nullopt;
  return pieces;
}

/// Times are composed of layouts that may fit, and of the leanest of each world, which is reported
/// where none does.
void LayoutComposer::compose_family(FamilyPieces& pieces) const {
  LayoutFamily& family = *pieces.family;
  const estimator::Calibration* rates = pieces.rates ? &*pieces.rates : nullptr;
  if (takes_costs_ && family.runs.size() > 1) {
    family.cost = cost_of_pipeline(family.runs, pieces.profiles, rates);
  }
  Composer composer(std::move(family.runs), std::move(pieces.profiles), rates);
  for (Layout* layout : family.layouts) layout->composed = composer.compose(layout->plan);
  const std::set<const Layout*> leanest = leanest_of_worlds(family.layouts);
  for (Layout* layout : family.layouts) {
    if (!layout->composed->may_fit && !takes_all_times_ && !leanest.contains(layout)) continue;
    layout->composed->time = composer.time(layout->plan);
  }
}

std::vector<estimator::LayerCost> LayoutComposer::layer_costs(const std::vector<const Plan*>& plans,
                                                              Search& search) {
  std::vector<std::vector<PieceRun>> runs_of;
  std::vector<const PieceRun*> runs;
  runs_of.reserve(plans.size());
  for (const Plan* plan : plans) runs_of.push_back(estimator::probe_runs(*plan));
  for (const auto& of_plan : runs_of) {
    for (const PieceRun& run : of_plan) runs.push_back(&run);
  }
  Progress progress = progress_of("executing a layer of each kind", runs.size());
  std::vector<RanksAnswer> answers = execute(runs, progress, search);
  std::vector<estimator::LayerCost> costs;
  auto answer = answers.begin();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    std::vector<RankProfile> profiles;
    for (std::size_t run = 0; run < runs_of[i].size(); ++run, ++answer) {
      if (!answer->profiles.empty()) profiles.push_back(std::move(answer->profiles.front()));
    }
    const bool has_all = !profiles.empty() && profiles.size() == runs_of[i].size();
    const auto rates = job_.calibration_of(*plans[i]);
    costs.push_back(has_all ? layer_cost(runs_of[i], profiles, rates ? &*rates : nullptr)
                            : estimator::LayerCost{});
  }
  return costs;
}

std::vector<RanksAnswer> LayoutComposer::execute(const std::vector<const PieceRun*>& runs,
                                                 Progress& progress,
                                                 Search& search) {
  std::vector<RanksOfPlan> ranks;
  ranks.reserve(runs.size());
  for (const PieceRun* run : runs) ranks.push_back({&run->plan, {run->rank}});
  RankJob job = job_.rank_job(environment_);
  job.attribute_memory = false;
  job.lift_limit = true;
  const auto executing = Clock::now();
  AnswersSoFar so_far = run_ranks_until_interrupted(ranks, job, environment_, progress);
  search.execute_seconds += seconds_since(executing);
  search.interrupted = so_far.interrupted || search.interrupted;
  search.pieces_run +=
      std::count_if(so_far.answers.begin(), so_far.answers.end(), [](const RanksAnswer& answer) {
        return !answer.profiles.empty() || !answer.refusal.empty();
      });
  so_far.answers.resize(runs.size());
  return std::move(so_far.answers);
}

}  // namespace sim
