#include "sim/cli/page/rank_page.h"

#include <fmt/format.h>

#include <utility>

#include "estimator/base/units.h"
#include "sim/cli/page/sections.h"
#include "sim/cli/report/module_report.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/profile_report.h"

namespace sim {
namespace {

using estimator::format_gib;
using estimator::RankProfile;

std::vector<Headline> headlines_of_peak(const estimator::PeakRecord& peak) {
  return {{"Allocated", format_gib(peak.allocated_bytes), "simulated: the largest sum of tensors"},
          {"Reserved",
           format_gib(peak.reserved_bytes),
           "simulated: what PyTorch's allocator took from the GPU"}};
}

}  // namespace

Page rank_page(const PlanInput& input,
               const RankProfile& profile,
               const RankDetail& detail,
               int64_t limit_bytes) {
  Page page{.command = "onerank run",
            .title = fmt::format("{}, rank {}", title_of(input.plan), profile.rank),
            .setting = lines_of(plan_text(input)),
            .headlines = headlines_of_peak(profile.peak),
            .tool = tool_words(profile.tool)};
  page.verdict = peak_line(profile.peak);
  if (profile.limit_lifted) {
    page.outcome = estimator::Fit::kDoesNotFit;
    page.verdict = fmt::format("does not fit in {}: it ran again without the limit; {}",
                               format_gib(limit_bytes),
                               page.verdict);
  }
  page.headlines.push_back({"Parameters",
                            estimator::with_commas(profile.parameters.count),
                            "simulated: counted in the shard that was built"});
  page.headlines.push_back({"Rank",
                            std::to_string(profile.rank),
                            fmt::format("of {}; tensor {}, data {}, stage {}",
                                        estimator::with_commas(profile.world_size),
                                        profile.coordinate.tensor,
                                        profile.coordinate.data,
                                        profile.coordinate.pipeline)});
  add_rank_detail(detail, &profile, limit_bytes, page);
  if (profile.peak.categories) {
    page.sections.push_back({.id = "categories",
                             .title = "What fills the peak",
                             .tables = {{"", category_table(*profile.peak.categories), {}}}});
  }
  if (!profile.modules.empty()) {
    page.sections.push_back(
        {.id = "modules",
         .title = "Memory by module",
         .tables = {module_table(profile.modules, {.each = false, .depth = std::nullopt})}});
  }
  return page;
}

Page peak_page(const estimator::PeakSnapshot& snapshot,
               const std::string& place,
               TitledTable groups) {
  const estimator::PeakSnapshotHeader& header = snapshot.header;
  Page page{.command = "onerank memory",
            .title = header.plan.empty() ? "A peak" : header.plan,
            .verdict = peak_line(header.peak),
            .setting = {place},
            .headlines = headlines_of_peak(header.peak),
            .tool = tool_words(header.tool)};
  page.headlines.push_back(
      {"Allocations", estimator::with_commas(header.allocations), "simulated: live at the peak"});
  add_rank_detail({.history = {}, .peak = snapshot}, nullptr, 0, page);
  page.sections.push_back(
      {.id = "groups", .title = "The same in groups", .tables = {std::move(groups)}});
  return page;
}

}  // namespace sim
