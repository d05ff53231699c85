#include "sim/cli/page/program_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/program/program_roofline.h"
#include "sim/cli/page/sections.h"
#include "sim/cli/report/module_report.h"
#include "sim/cli/report/program_report.h"
#include "sim/cli/report/program_time_text.h"
#include "sim/cli/report/rank_memory_report.h"
#include "sim/cli/report/verdict_report.h"

namespace sim {
namespace {

using estimator::format_duration;
using estimator::ProgramEstimate;
using estimator::RankProfile;

std::vector<Headline> headlines_of_program(const ProgramEstimate& estimate) {
  std::vector<Headline> headlines = memory_headlines(
      estimate.verdict, "the CUDA context", fmt::format("rank {}", estimate.verdict.worst_rank));
  if (!estimate.time) return headlines;
  headlines.push_back({"One iteration",
                       format_duration(estimate.time->iteration_seconds),
                       "simulated: a replay of what the program launched"});
  headlines.push_back(
      {"MFU",
       fmt::format("{:.1f} %", 100 * estimate.time->mfu),
       "computed, of the dense 16-bit peak; without what runs again, and the optimizer's "
       "products"});
  if (estimate.throughput && estimate.throughput->tokens_per_second) {
    headlines.push_back({"Tokens/s",
                         estimator::whole_with_commas(*estimate.throughput->tokens_per_second),
                         estimate.throughput->tokens_note});
  }
  return headlines;
}

void add_estimate(const ProgramEstimate& estimate, Page& page) {
  page.outcome = estimate.verdict.outcome;
  page.verdict = verdict_text(estimate.verdict);
  page.headlines = headlines_of_program(estimate);
  page.data.emplace_back("estimate", estimator::to_json(estimate).dump());
  page.sections.push_back(classes_section(estimate.verdict, estimate.ranks));
}

}  // namespace

const RankProfile& detailed_rank(const std::vector<RankProfile>& profiles,
                                 const std::optional<ProgramEstimate>& estimate) {
  const auto worst = std::find_if(profiles.begin(), profiles.end(), [&](const RankProfile& rank) {
    return estimate && rank.rank == estimate->verdict.worst_rank;
  });
  return worst == profiles.end() ? profiles.front() : *worst;
}

Page program_page(const std::vector<RankProfile>& profiles, const ProgramParts& parts) {
  const RankProfile& rank = detailed_rank(profiles, parts.estimate);
  Page page{.command = parts.command,
            .title = fmt::format("{}", fmt::join(rank.program->command, " ")),
            .setting = {fmt::format("{} of {} ranks were run; rank {} on {}",
                                    profiles.size(),
                                    estimator::with_commas(rank.world_size),
                                    rank.rank,
                                    rank.device.name)},
            .tool = tool_words(rank.tool)};
  if (parts.estimate) {
    add_estimate(*parts.estimate, page);
  } else {
    page.verdict = program_verdict(rank);
  }
  if (rank.program->recorded) {
    add_rank_detail(parts.detail.value_or(RankDetail()), &rank, rank.device.total_bytes, page);
  }
  if (parts.estimate) {
    const auto* const worst = worst_class(parts.estimate->verdict, parts.estimate->ranks);
    if (worst != nullptr) page.sections.push_back(terms_section(*worst));
  }
  if (parts.estimate && parts.estimate->time) {
    page.sections.push_back({.id = "time",
                             .title = "Where the time goes",
                             .tables = program_time_tables(*parts.estimate->time)});
  }
  if (parts.replay != nullptr) {
    add_step("all streams", step_picture(*parts.replay), page);
    add_roofline(estimator::program_roofline(*parts.replay), page);
  }
  if (!rank.modules.empty()) {
    page.sections.push_back(
        {.id = "modules",
         .title = "Memory by module",
         .tables = {module_table(rank.modules, {.each = false, .depth = std::nullopt})}});
  }
  if (parts.estimate) {
    add_training(parts.estimate->training, page);
    add_origins(
        parts.estimate->time ? parts.estimate->time->rates : std::vector<estimator::RateTerm>(),
        parts.estimate->assumptions,
        parts.estimate->not_modelled,
        page);
  }
  return page;
}

}  // namespace sim
