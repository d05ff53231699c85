#include "sim/cli/commands/layout_composer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iterator>
#include <set>

#include "estimator/what_if/least_bytes.h"
#include "estimator/what_if/option_paths.h"
#include "sim/cli/process/interrupts.h"

namespace sim {
namespace {

namespace paths = estimator::paths;
using estimator::Composer;
using estimator::Layout;
using estimator::Layouts;
using estimator::PieceRun;
using estimator::Plan;
using estimator::Search;
using estimator::UserError;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What a layout needs memory for, each the more the larger: micro-batch, what is not recomputed,
/// and what ZeRO does not divide.
using Demand = std::array<int64_t, 3>;
constexpr const char* kDemandPaths[] = {paths::kMicroBatch, paths::kRecompute, paths::kZeroStage};

Demand demand_of(const Layout& layout) {
  const Plan& plan = layout.plan;
  // Stages 0 and 1 are one kind of data parallelism, and 2 and 3 another.
  const int64_t most_divided = plan.parallelism.divides_gradients() ? 3 : 1;
  return {plan.training.micro_batch_size,
          -static_cast<int64_t>(plan.training.recompute),
          most_divided - plan.parallelism.zero_stage};
}

bool needs_no_less(const Demand& demand, const Demand& other) {
  return std::equal(demand.begin(), demand.end(), other.begin(), std::greater_equal<>());
}

/// What families of one order have in common.
std::string key_beside_demand(const Layout& layout) {
  Layout other = layout;
  std::erase_if(other.edits, [](const estimator::PlanEdit& edit) {
    return std::find(std::begin(kDemandPaths), std::end(kDemandPaths), edit.path) !=
           std::end(kDemandPaths);
  });
  return estimator::quick_pieces_key(other) +
         (layout.plan.parallelism.divides_gradients() ? ", sharded" : "");
}

/// The place of each demand in an order in which what needs less comes first.
class Rounds {
 public:
  void add(const Demand& demand) {
    for (std::size_t i = 0; i < demand.size(); ++i) values_[i].insert(demand[i]);
  }
  std::ptrdiff_t of(const Demand& demand) const {
    std::ptrdiff_t round = 0;
    for (std::size_t i = 0; i < demand.size(); ++i) {
      round += std::distance(values_[i].begin(), values_[i].find(demand[i]));
    }
    return round;
  }

 private:
  std::array<std::set<int64_t>, std::tuple_size_v<Demand>> values_;
};

/// The demands that no layout meets, by the rest.
class Hopeless {
 public:
  void add(const Layout& layout) {
    demands_[key_beside_demand(layout)].push_back(demand_of(layout));
  }
  bool has(const Layout& layout) const {
    const auto found = demands_.find(key_beside_demand(layout));
    if (found == demands_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Demand& one) {
      return needs_no_less(demand_of(layout), one);
    });
  }

 private:
  std::map<std::string, std::vector<Demand>> demands_;
};

/// Whether a layout fits that was composed; those that were not may.
bool may_fit(const std::vector<Layout*>& layouts) {
  return std::any_of(layouts.begin(), layouts.end(), [](const Layout* layout) {
    return !layout->composed || layout->composed->may_fit;
  });
}

/// The families of a part of the work.
template <class Families>
void keep_part(const Part& part, Families& families) {
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

}  // namespace

LayoutComposer::Families LayoutComposer::families_of(std::vector<Layouts>& worlds, Search& search) {
  Families families;
  for (Layouts& world : worlds) {
    for (Layout& layout : world.allowed) {
      if (estimator::least_bytes(layout.plan) > search.capacity_bytes) {
        ++search.layouts_too_large;
      } else {
        families[estimator::quick_pieces_key(layout)].layouts.push_back(&layout);
      }
    }
  }
  return families;
}

void LayoutComposer::compose(std::vector<Layouts>& worlds, const Part& part, Search& search) {
  Families families = families_of(worlds, search);
  keep_part(part, families);
  Rounds rounds;
  for (const auto& [key, family] : families) rounds.add(demand_of(*family.layouts.front()));
  std::map<std::ptrdiff_t, std::vector<Family*>> by_round;
  for (auto& [key, family] : families) {
    by_round[rounds.of(demand_of(*family.layouts.front()))].push_back(&family);
  }
  Hopeless hopeless;
  for (auto& [round, of_round] : by_round) {
    std::erase_if(of_round, [&](const Family* family) {
      if (!hopeless.has(*family->layouts.front())) return false;
      search.layouts_hopeless += static_cast<int64_t>(family->layouts.size());
      return true;
    });
    compose_families(of_round, search);
    if (search.interrupted) break;
    for (const Family* family : of_round) {
      if (!may_fit(family->layouts)) hopeless.add(*family->layouts.front());
    }
  }
  if (search.pieces_run == 0 || has_composed_ || search.interrupted) return;
  throw UserError({.what = "no layout can be composed: its pieces cannot be executed",
                   .where = first_refusal_,
                   .help = "see `onerank run` of one layout"});
}

void LayoutComposer::compose_families(const std::vector<Family*>& families, Search& search) {
  if (families.empty()) return;
  for (Family* family : families) family->runs = runs_of(*family);
  const auto executing = Clock::now();
  std::vector<RanksAnswer> answers = execute(families, search);
  search.execute_seconds += seconds_since(executing);
  const auto composing = Clock::now();
  const Interrupts interrupts;
  auto answer = std::make_move_iterator(answers.begin());
  for (Family* family : families) {
    const auto end = answer + static_cast<std::ptrdiff_t>(family->runs.size());
    compose_family(*family, {answer, end}, search);
    answer = end;
    search.interrupted = interrupts.take_request_to_end() || search.interrupted;
  }
  search.compose_seconds += seconds_since(composing);
}

void LayoutComposer::compose_family(Family& family,
                                    std::vector<RanksAnswer> answers,
                                    Search& search) {
  std::vector<estimator::RankProfile> profiles;
  for (RanksAnswer& answer : answers) {
    if (first_refusal_.empty()) first_refusal_ = answer.refusal;
    if (!answer.profiles.empty()) profiles.push_back(std::move(answer.profiles.front()));
  }
  if (profiles.size() < family.runs.size()) return;
  has_composed_ = true;
  const auto rates = job_.calibration_of(family.layouts.front()->plan);
  Composer composer(std::move(family.runs), std::move(profiles), rates ? &*rates : nullptr);
  for (Layout* layout : family.layouts) layout->composed = composer.compose(layout->plan);
  search.layouts_composed += static_cast<int64_t>(family.layouts.size());
}

std::vector<PieceRun> LayoutComposer::runs_of(const Family& family) {
  const Plan& plan = family.layouts.front()->plan;
  const std::string obstacle = estimator::obstacle_to_composition(plan);
  if (obstacle.empty()) return estimator::piece_runs(plan);
  throw UserError({.what = "layouts of this plan cannot be composed: " + obstacle,
                   .where = plan.name.empty() ? "the plan" : plan.name,
                   .help = "use `onerank sweep`, which executes every layout whole"});
}

std::vector<RanksAnswer> LayoutComposer::execute(const std::vector<Family*>& families,
                                                 Search& search) {
  std::vector<RanksOfPlan> ranks;
  for (const Family* family : families) {
    for (const PieceRun& run : family->runs) ranks.push_back({&run.plan, {run.rank}});
  }
  RankJob job = job_.rank_job(environment_);
  job.attribute_memory = false;
  job.lift_limit = true;
  Progress progress("executing pieces",
                    static_cast<int64_t>(ranks.size()),
                    standard_error_display(),
                    Progress::Clock::now());
  AnswersSoFar so_far = run_ranks_until_interrupted(ranks, job, environment_, progress);
  search.interrupted = so_far.interrupted;
  search.pieces_run +=
      std::count_if(so_far.answers.begin(), so_far.answers.end(), [](const RanksAnswer& answer) {
        return !answer.profiles.empty() || !answer.refusal.empty();
      });
  return std::move(so_far.answers);
}

}  // namespace sim
