#include "estimator/profile/rank_profile.h"

#include <fmt/format.h>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/plan/option_table.h"
#include "estimator/profile/profile_claims.h"

namespace estimator {

std::string profile_file_name(int64_t rank) { return fmt::format("rank-{:05}.json", rank); }

int64_t planned_count(int64_t executed_count,
                      Direction direction,
                      const MicroBatchRecord& micro_batches) {
  const auto [total, executed] = std::pair(micro_batches.total, micro_batches.executed);
  if (!is_per_micro_batch(direction) || executed == 0) return executed_count;
  return (executed_count * total + executed / 2) / executed;
}

RankProfile read_rank_profile(std::string_view text, const std::string& origin) {
  auto profile =
      read_written<RankProfile>(text, origin, "make it again with `onerank run --output FILE`");
  profile.plan = with_new_keys(profile.plan.json());
  FieldReader reader(origin);
  report_contradictions(profile, reader);
  reader.throw_if_any();
  return profile;
}

}  // namespace estimator
