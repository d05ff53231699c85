#include "estimator/profile/rank_profile.h"

#include <fmt/format.h>

#include "estimator/base/files.h"

namespace estimator {

std::string profile_file_name(int64_t rank) { return fmt::format("rank-{:05}.json", rank); }

RankProfile read_rank_profile(std::string_view text, const std::string& origin) {
  const Json json = parse_json(text, origin);
  const auto refuse = [&](std::string where) {
    throw UserError({.what = fmt::format("{} is not a rank profile of this version", origin),
                     .where = std::move(where),
                     .help = "make it again with `onerank run --output FILE`"});
  };
  if (!json.is_object() || json.value("kind", Json()) != "rank_profile") {
    refuse("kind is not \"rank_profile\"");
  }
  if (json.value("schema_version", Json()) != kProfileSchemaVersion) {
    refuse(fmt::format("schema_version = {}, this tool reads {}",
                       shown(json.value("schema_version", Json())),
                       kProfileSchemaVersion));
  }
  FieldReader reader(origin);
  RankProfile profile;
  reader.read(json, profile, "");
  reader.throw_if_any();
  if (profile.phases.empty() || !profile.plan.is_object()) refuse("it holds no phases or no plan");
  return profile;
}

}  // namespace estimator
