#include "tests/fuzz/profile_uses.h"

#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/roofline.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/step/chrome_trace.h"
#include "sim/cli/report/estimate_report.h"
#include "sim/cli/report/module_report.h"
#include "sim/cli/report/profile_report.h"
#include "sim/cli/report/timeline_text.h"
#include "sim/cli/report/verdict_report.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

using estimator::Calibration;
using estimator::Json;
using estimator::RankProfile;

void use_profiles(const std::vector<RankProfile>& profiles, const Calibration* calibration) {
  const estimator::Plan plan = estimator::resolve_plan(profiles.front().plan.json(), {});
  const auto estimate = estimator::estimate_cluster(plan, profiles, calibration);
  expect_sound_numbers(estimator::to_json(estimate), "estimate");
  expect_written_whole(estimator::to_json(estimate), "the estimate");
  expect_sound_text(sim::verdict_text(estimate.verdict) + sim::estimate_text(estimate), "estimate");
  expect_sound_numbers(
      estimator::to_json(estimator::roofline_of(plan, profiles, estimate, calibration)),
      "roofline");
  const auto timeline = estimator::cluster_timeline(plan, profiles, calibration);
  sim::timeline_text(timeline, 100);
  expect_written_whole(Json::parse(estimator::chrome_trace(timeline)), "the trace");
}

RankProfile read_profile(const std::string& text) {
  RankProfile profile = estimator::read_rank_profile(text, "profile");
  const Json document = estimator::to_json(profile);
  if (estimator::to_json(estimator::read_rank_profile(document.dump(), "again")) != document) {
    fail("a profile reads back as another one");
  }
  expect_sound_text(sim::profile_text(profile) + sim::module_text(profile.modules, {}), "profile");
  return profile;
}

std::vector<RankProfile> read_profiles(const std::string& text) {
  const Json list = Json::parse(text, nullptr, false);
  if (!list.is_array() || list.empty()) return {read_profile(text)};
  std::vector<RankProfile> profiles;
  for (const Json& document : list) {
    profiles.push_back(read_profile(document.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  return profiles;
}

}  // namespace fuzz
