#include "estimator/what_if/equal_ranks.h"

#include <fmt/format.h>

#include "estimator/base/fields.h"
#include "estimator/cluster/profile_match.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {
std::string rank_run_key(const Plan& plan, int64_t rank) {
  Json seen = without_what_changes_no_rank(to_json(plan));
  seen["training"].erase("global_batch_size");
  seen["training"].erase("gradient_accumulation_steps");
  const ScheduleShape shape = schedule_shape(plan);
  const int64_t stage = ParallelLayout(plan.parallelism).coordinate(rank).pipeline;
  return fmt::format("rank {}, {} in flight, {} to run, buffers for {}: {}",
                     rank,
                     forwards_in_flight(shape, stage),
                     micro_batches_to_execute(shape, stage),
                     plan.torch_pipeline() ? plan.micro_batches() : 0,
                     seen.dump());
}

RankProfile as_rank_of(const Plan& plan, RankProfile profile) {
  profile.plan = to_json(plan);
  if (profile.micro_batches.total == plan.micro_batches()) return profile;
  profile.micro_batches.total = plan.micro_batches();
  for (OperatorRecord& record : profile.operators) {
    record.count = planned_count(record.executed_count, record.direction, profile.micro_batches);
  }
  for (CollectiveRecord& record : profile.collectives) {
    record.count = planned_count(record.executed_count, record.direction, profile.micro_batches);
  }
  return profile;
}

}  // namespace estimator
