#include "estimator/cluster/rank_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "estimator/plan/dealt_parameters.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {
namespace {

/// Everything in which two stages can differ. The first stage has the embedding, buckets its
/// gradients and receives nothing; the last one has the head, layers of multi-token prediction and,
/// when tied or for these, a copy of the embedding, and sends nothing. Most often it has the final
/// norm, too.
struct StageKey {
  std::vector<int64_t> layers;  ///< of its chunks
  std::vector<bool> experts;    ///< which of its layers have them
  bool first;
  bool last;
  bool final_norm;
  int64_t in_flight;
  int64_t executed;

  auto operator<=>(const StageKey&) const = default;
};

int64_t context_rank_that_holds_most(const ParallelConfig& parallelism) {
  return parallelism.context_comm == ContextComm::kP2p ? parallelism.context - 1 : 0;
}

int64_t rank_that_holds_most(const Plan& plan, const ParallelLayout& layout, int64_t stage) {
  const int64_t context = context_rank_that_holds_most(plan.parallelism);
  if (!deals_parameters_in_turn(plan)) {
    return layout.rank({.context = context, .pipeline = stage});
  }
  const std::vector<int64_t> owners = ranks_that_own_most(plan, stage);
  const auto holds_most = [&](int64_t rank) { return layout.coordinate(rank).context == context; };
  const auto found = std::find_if(owners.begin(), owners.end(), holds_most);
  return found == owners.end() ? owners.front() : *found;
}

}  // namespace

std::vector<RankClass> rank_classes(const Plan& plan) {
  const ScheduleShape schedule = schedule_shape(plan);
  const int64_t stages = schedule.stages;
  const ParallelLayout layout(plan.parallelism);
  const int64_t ranks_per_stage = layout.world_size() / stages;

  std::vector<RankClass> classes;
  std::map<StageKey, std::size_t> class_of;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const StageKey key{.layers = plan.layers_of_chunks(stage),
                       .experts = plan.expert_layers_of_stage(stage),
                       .first = stage == 0,
                       .last = stage == stages - 1,
                       .final_norm = plan.virtual_stage_of_final_norm() % stages == stage,
                       .in_flight = forwards_in_flight(schedule, stage),
                       .executed = micro_batches_to_execute(schedule, stage)};
    const auto [found, is_new] = class_of.try_emplace(key, classes.size());
    if (is_new) classes.push_back({rank_that_holds_most(plan, layout, stage), 0, {}});
    RankClass& rank_class = classes[found->second];
    rank_class.count += ranks_per_stage;
    rank_class.stages.push_back(stage);
  }
  return classes;
}

std::string stages_to_text(const std::vector<int64_t>& stages) {
  std::string text;
  for (std::size_t begin = 0; begin < stages.size();) {
    std::size_t end = begin + 1;
    while (end < stages.size() && stages[end] == stages[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += end - begin == 1 ? fmt::format("{}", stages[begin])
                             : fmt::format("{}-{}", stages[begin], stages[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace estimator
