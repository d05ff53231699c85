#include "sim/cli/page/estimate_page.h"

#include <fmt/format.h>

#include <cmath>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "sim/cli/page/sections.h"
#include "sim/cli/report/advice_report.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/rank_memory_report.h"
#include "sim/cli/report/step_report.h"
#include "sim/cli/report/textbook_report.h"
#include "sim/cli/report/verdict_report.h"

namespace sim {
namespace {

using estimator::amount_with_commas;
using estimator::ClusterEstimate;
using estimator::format_duration;
using estimator::whole_with_commas;

std::vector<Headline> headlines_of(const ClusterEstimate& estimate) {
  std::vector<Headline> headlines =
      memory_headlines(estimate.verdict,
                       "the CUDA context and communicators",
                       fmt::format("rank {}, the worst", estimate.verdict.worst_rank));
  const double seconds = step_seconds(estimate);
  if (!(seconds > 0)) return headlines;
  headlines.push_back(
      {"One iteration",
       format_duration(seconds),
       estimate.measured_step ? "measured (given)" : estimator::to_string(estimate.time.source)});
  const estimator::Throughput& throughput = estimate.throughput;
  if (!std::isfinite(throughput.tokens_per_second)) return headlines;
  headlines.push_back(
      {"Tokens/s",
       whole_with_commas(throughput.tokens_per_second),
       fmt::format("computed; {:.1f} for each GPU", throughput.tokens_per_second_per_gpu)});
  headlines.push_back({"MFU",
                       fmt::format("{:.1f} %", 100 * throughput.mfu),
                       "computed, of the dense peak; Megatron-LM's count"});
  if (estimate.training && std::isfinite(estimate.training->seconds)) {
    headlines.push_back({"Training",
                         format_duration(estimate.training->seconds),
                         fmt::format("computed, with failures; {} GPU hours",
                                     amount_with_commas(estimate.training->gpu_hours))});
  }
  return headlines;
}

void add_advice(const ClusterEstimate& estimate, Page& page) {
  if (estimate.advice.empty()) return;
  PageSection section{.id = "advice",
                      .title = "What would help",
                      .lead = {"Each change was run. Add its flags to the command."}};
  for (const estimator::Advice& advice : estimate.advice) {
    section.suggestions.push_back(
        {advice.text, gains_text(advice, step_seconds(estimate)), advice.flags});
  }
  page.sections.push_back(std::move(section));
}

void add_textbook(const ClusterEstimate& estimate, Page& page) {
  std::vector<TitledTable> tables = textbook_tables(estimate);
  if (tables.empty()) return;
  page.sections.push_back({.id = "textbook", .title = "By the book", .tables = std::move(tables)});
}

}  // namespace

Page estimate_page(const PlanInput& input,
                   const ClusterEstimate& estimate,
                   const EstimateParts& parts) {
  Page page{.command = "onerank estimate",
            .title = title_of(input.plan),
            .outcome = estimate.verdict.outcome,
            .verdict = verdict_text(estimate.verdict),
            .setting = lines_of(plan_text(input)),
            .headlines = headlines_of(estimate),
            .tool = tool_words(estimate.tool)};
  page.data.emplace_back("estimate", estimator::to_json(estimate).dump());
  add_advice(estimate, page);
  page.sections.push_back(classes_section(estimate.verdict, estimate.rank_classes));
  if (parts.worst_rank) {
    add_rank_detail(*parts.worst_rank, parts.worst_profile, estimate.verdict.capacity_bytes, page);
  }
  const auto* const worst = worst_class(estimate.verdict, estimate.rank_classes);
  if (worst != nullptr) page.sections.push_back(terms_section(*worst));
  page.sections.push_back(
      {.id = "time",
       .title = "Where the time goes",
       .pictures = {{"parts", "The parts of one iteration on the critical path."}},
       .tables = {time_table(estimate.time)}});
  add_step("all stages", step_picture(parts.timeline), page);
  add_roofline(parts.roofline, page);
  add_training(estimate.training, page);
  add_textbook(estimate, page);
  add_origins(estimate.rates, estimate.assumptions, estimate.not_modelled, page);
  return page;
}

}  // namespace sim
