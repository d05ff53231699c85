#include "sim/cli/jobs/many_plans.h"

#include <algorithm>
#include <map>

#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/what_if/equal_ranks.h"
#include "sim/cli/process/progress.h"

namespace sim {
namespace {

using estimator::Plan;
using estimator::RankProfile;

/// Ranks that are run together: more make better use of the processors, but all their profiles are
/// held at once.
constexpr std::size_t kRanksAtOnce = 64;

/// A run of a rank, for all plans that have an equal one.
struct SharedRun {
  const Plan* plan = nullptr;  ///< one of them
  int64_t rank = 0;
  std::size_t last_user = 0;  ///< number of the last plan that needs it
  std::optional<RankProfile> profile;
  std::string refusal;
};

class PlansInTurn {
 public:
  PlansInTurn(const std::vector<Plan>& plans, const ManyPlans& how, const Environment& environment)
      : plans_(plans), how_(how), environment_(environment), runs_of_(plans.size()) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      for (const estimator::RankClass& one : estimator::rank_classes(plans[i])) {
        const int64_t rank = one.representative_rank;
        SharedRun& run = runs_[estimator::rank_run_key(plans[i], rank)];
        if (run.plan == nullptr) run = {.plan = &plans[i], .rank = rank};
        run.last_user = i;
        runs_of_[i].push_back(&run);
      }
    }
  }

  std::string run_part(const Part& part) {
    std::vector<RanksOfPlan> ranks;
    int64_t number = 0;
    for (const auto& [key, run] : runs_) {
      if (part.has(number++)) ranks.push_back({run.plan, {run.rank}});
    }
    const auto done = static_cast<int64_t>(ranks.size());
    Progress progress = progress_of(done);
    while (!ranks.empty()) {
      const std::size_t left = ranks.size() - std::min(ranks.size(), kRanksAtOnce);
      run_ranks_of_plans({ranks.begin() + static_cast<std::ptrdiff_t>(left), ranks.end()},
                         how_.job,
                         environment_,
                         progress);
      ranks.resize(left);
    }
    return part_text(part, done);
  }

  std::vector<PlanAnswer> answers() {
    Progress progress = progress_of(static_cast<int64_t>(runs_.size()));
    std::vector<PlanAnswer> answers;
    while (answers.size() < plans_.size()) {
      const std::size_t end = run_from(answers.size(), progress);
      while (answers.size() < end) answers.push_back(answer_of(answers.size()));
      forget_before(end);
    }
    return answers;
  }

 private:
  Progress progress_of(int64_t ranks) const {
    return {how_.progress, ranks, standard_error_display(), Progress::Clock::now()};
  }

  /// Runs what plans from number `begin` on need; returns the number of the first plan that is not
  /// ready yet.
  std::size_t run_from(std::size_t begin, Progress& progress) {
    std::vector<SharedRun*> runs;
    std::size_t end = begin;
    for (; end < plans_.size() && runs.size() < kRanksAtOnce; ++end) {
      for (SharedRun* run : runs_of_[end]) {
        const bool is_done = run->profile || !run->refusal.empty();
        const bool is_waiting = std::find(runs.begin(), runs.end(), run) != runs.end();
        if (!is_done && !is_waiting) runs.push_back(run);
      }
    }
    std::vector<RanksOfPlan> ranks;
    ranks.reserve(runs.size());
    for (const SharedRun* run : runs) ranks.push_back({run->plan, {run->rank}});
    std::vector<RanksAnswer> ran = run_ranks_of_plans(ranks, how_.job, environment_, progress);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i]->refusal = std::move(ran[i].refusal);
      if (!ran[i].profiles.empty()) runs[i]->profile = std::move(ran[i].profiles.front());
    }
    return end;
  }

  PlanAnswer answer_of(std::size_t number) const {
    const Plan& plan = plans_[number];
    std::vector<RankProfile> profiles;
    for (const SharedRun* run : runs_of_[number]) {
      if (!run->profile) return {.estimate = std::nullopt, .refusal = run->refusal};
      profiles.push_back(estimator::as_rank_of(plan, *run->profile));
    }
    const auto rates = how_.calibration_of(plan);
    return {.estimate = estimator::estimate_cluster(plan, profiles, rates ? &*rates : nullptr),
            .refusal = ""};
  }

  void forget_before(std::size_t end) {
    for (auto& [key, run] : runs_) {
      if (run.last_user < end) run.profile.reset();
    }
  }

  const std::vector<Plan>& plans_;
  const ManyPlans& how_;
  const Environment& environment_;
  std::map<std::string, SharedRun> runs_;
  std::vector<std::vector<SharedRun*>> runs_of_;  ///< of each plan
};

}  // namespace

std::vector<PlanAnswer> estimate_plans(const std::vector<Plan>& plans,
                                       const ManyPlans& how,
                                       const Environment& environment) {
  return PlansInTurn(plans, how, environment).answers();
}

std::string run_part_of_plans(const std::vector<Plan>& plans,
                              const ManyPlans& how,
                              const Part& part,
                              const Environment& environment) {
  return PlansInTurn(plans, how, environment).run_part(part);
}

}  // namespace sim
