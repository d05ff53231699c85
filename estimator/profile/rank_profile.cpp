#include "estimator/profile/rank_profile.h"

#include <fmt/format.h>

#include "estimator/base/document.h"
#include "estimator/plan/option_table.h"
#include "estimator/profile/profile_claims.h"

namespace estimator {

std::string profile_file_name(int64_t rank) { return fmt::format("rank-{:05}.json", rank); }

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
