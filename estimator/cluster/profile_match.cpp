#include "estimator/cluster/profile_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/plan/option_table.h"
#include "estimator/plan/parallel_layout.h"

namespace estimator {
namespace {

/// "name" is of the plan alone.
bool changes_no_rank(const std::string& path) {
  const PlanOption* option = find_plan_option(path);
  return path == "name" || (option != nullptr && !option->changes_ranks);
}

std::string difference_at(const std::string& path, const Json& plan, const Json& other);

Json value_of(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

std::string difference_in_objects(const std::string& path, const Json& plan, const Json& other) {
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const auto& [key, value] : plan.items()) {
    std::string difference = difference_at(prefix + key, value, value_of(other, key));
    if (!difference.empty()) return difference;
  }
  for (const auto& [key, value] : other.items()) {
    if (plan.contains(key)) continue;
    std::string difference = difference_at(prefix + key, Json(), value);
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string difference_at(const std::string& path, const Json& plan, const Json& other) {
  if (changes_no_rank(path)) return "";
  const Json nothing = Json::object();
  const Json& left = plan.is_null() && other.is_object() ? nothing : plan;
  const Json& right = other.is_null() && plan.is_object() ? nothing : other;
  if (left.is_object() && right.is_object()) return difference_in_objects(path, left, right);
  if (plan == other) return "";
  return fmt::format("{}: {} in the plan, {} in the profile", path, shown(plan), shown(other));
}

void check_belongs(const RankProfile& profile,
                   const Json& plan_json,
                   const ParallelLayout& layout) {
  const auto refuse = [&](std::string where) {
    throw UserError(
        {.what = fmt::format("the profile of rank {} is of another plan", profile.rank),
         .where = std::move(where),
         .help = "run the rank again with `onerank run`, or give the plan it was made from"});
  };
  const std::string difference = first_difference(plan_json, profile.plan.json());
  if (!difference.empty()) refuse(difference);
  if (profile.world_size != layout.world_size()) {
    refuse(fmt::format(
        "world_size = {}, that of the plan {}", profile.world_size, layout.world_size()));
  }
  const DeviceRecord& device = profile.device;
  if (device.kind == DeviceKind::kVirtual && device.gpu != plan_json["cluster"]["gpu"]) {
    refuse(fmt::format("device.gpu = {}, cluster.gpu of the plan {}",
                       device.gpu,
                       shown(plan_json["cluster"]["gpu"])));
  }
  const bool in_world = profile.rank >= 0 && profile.rank < layout.world_size();
  if (!in_world || layout.coordinate(profile.rank).pipeline != profile.coordinate.pipeline) {
    refuse(fmt::format("rank = {}, coordinate.pp = {}, world size {}",
                       profile.rank,
                       profile.coordinate.pipeline,
                       layout.world_size()));
  }
}

void check_none_missing(const std::vector<RankClass>& classes,
                        const std::vector<const RankProfile*>& matched) {
  std::vector<int64_t> ranks;
  std::vector<int64_t> stages;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (matched[i] != nullptr) continue;
    ranks.push_back(classes[i].representative_rank);
    stages.insert(stages.end(), classes[i].stages.begin(), classes[i].stages.end());
  }
  if (ranks.empty()) return;
  std::sort(stages.begin(), stages.end());
  throw UserError({.what = fmt::format(
                       "{} of {} classes of ranks have no profile", ranks.size(), classes.size()),
                   .where = fmt::format("pipeline stages without one: {}", stages_to_text(stages)),
                   .help = fmt::format(
                       "make them with `RANK=<rank> onerank run PLAN --output {}` for the ranks {}",
                       profile_file_name(ranks.front()),
                       fmt::join(ranks, ", "))});
}

}  // namespace

std::string first_difference(const Json& plan, const Json& profile_plan) {
  return difference_at("", plan, profile_plan);
}

Json without_what_changes_no_rank(const Json& plan) {
  Json kept = Json::object();
  for (const auto& [section, value] : plan.items()) {
    if (!value.is_object()) {
      if (!changes_no_rank(section)) kept[section] = value;
      continue;
    }
    for (const auto& [key, field] : value.items()) {
      if (!changes_no_rank(fmt::format("{}.{}", section, key))) kept[section][key] = field;
    }
  }
  return kept;
}

std::vector<const RankProfile*> match_profiles(const Plan& plan,
                                               const std::vector<RankClass>& classes,
                                               const std::vector<RankProfile>& profiles) {
  const ParallelLayout layout(plan.parallelism);
  std::vector<std::size_t> class_of_stage(static_cast<std::size_t>(plan.parallelism.pipeline));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (const int64_t stage : classes[i].stages)
      class_of_stage[static_cast<std::size_t>(stage)] = i;
  }
  const Json plan_json = to_json(plan);
  std::vector<const RankProfile*> matched(classes.size(), nullptr);
  for (const RankProfile& profile : profiles) {
    check_belongs(profile, plan_json, layout);
    const RankProfile*& slot =
        matched[class_of_stage[static_cast<std::size_t>(profile.coordinate.pipeline)]];
    if (slot == nullptr || profile.peak.reserved_bytes > slot->peak.reserved_bytes) slot = &profile;
  }
  check_none_missing(classes, matched);
  return matched;
}

}  // namespace estimator
