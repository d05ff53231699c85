#include "sim/cli/process/rank_store.h"

#include <fmt/format.h>

#include <filesystem>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/stable_hash.h"
#include "estimator/what_if/equal_ranks.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::Plan;

constexpr const char* kProfile = "profile";
constexpr const char* kRefusal = "refusal";

std::string how_to_run(const RankJob& job) {
  return fmt::format("onerank {}, device {}{}{}{}",
                     ONERANK_VERSION,
                     estimator::to_string(job.device),
                     job.all_micro_batches ? ", all micro-batches" : "",
                     job.attribute_memory ? ", attributed" : "",
                     job.lift_limit ? ", without limit" : "");
}

}  // namespace

RankStore::RankStore(const RankJob& job) : folder_(job.store), how_(how_to_run(job)) {
  if (!folder_.empty()) estimator::make_folder(folder_);
}

std::string RankStore::key_of(const Plan& plan, int64_t rank) const {
  return how_ + ", " + estimator::rank_run_key(plan, rank);
}

std::string RankStore::path_of(const std::string& key) const {
  return (std::filesystem::path(folder_) / fmt::format("{:016x}.json", estimator::stable_hash(key)))
      .string();
}

std::optional<RanksAnswer> RankStore::find(const RanksOfPlan& ranks) const {
  if (folder_.empty()) return std::nullopt;
  RanksAnswer answer;
  for (const int64_t rank : ranks.ranks) {
    const std::string key = key_of(*ranks.plan, rank);
    const std::string path = path_of(key);
    if (!std::filesystem::exists(path)) return std::nullopt;
    const Json kept = Json::parse(estimator::read_file(path), nullptr, false);
    if (!kept.is_object() || kept.value("key", "") != key) return std::nullopt;
    if (kept.contains(kRefusal)) return RanksAnswer{.profiles = {}, .refusal = kept.at(kRefusal)};
    answer.profiles.push_back(estimator::as_rank_of(
        *ranks.plan, estimator::read_rank_profile(kept.at(kProfile).dump(), path)));
  }
  return answer;
}

void RankStore::keep_profile(const Plan& plan, int64_t rank, const std::string& profile) const {
  keep(plan, rank, kProfile, profile);
}

void RankStore::keep_refusal(const Plan& plan, int64_t rank, const std::string& refusal) const {
  keep(plan, rank, kRefusal, Json(refusal).dump());
}

void RankStore::keep(const Plan& plan,
                     int64_t rank,
                     const char* what,
                     const std::string& json) const {
  if (folder_.empty()) return;
  const std::string key = key_of(plan, rank);
  estimator::write_file_whole(
      path_of(key), fmt::format("{{\"key\": {}, \"{}\": {}}}\n", Json(key).dump(), what, json));
}

}  // namespace sim
