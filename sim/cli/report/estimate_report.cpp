#include "sim/cli/report/estimate_report.h"

#include <fmt/format.h>

#include <vector>

#include "sim/cli/report/advice_report.h"
#include "sim/cli/report/program_time_text.h"
#include "sim/cli/report/rank_memory_report.h"
#include "sim/cli/report/step_report.h"
#include "sim/cli/report/table.h"
#include "sim/cli/report/textbook_report.h"
#include "sim/cli/report/training_report.h"
#include "sim/cli/report/verdict_report.h"

namespace sim {
namespace {

using estimator::ClusterEstimate;

std::string list_text(const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = fmt::format("\n{}\n", title);
  for (const std::string& item : items) text += "  - " + item + "\n";
  return text;
}

/// Rates, assumptions and gaps, or how many there are.
std::string sources_text(const std::vector<estimator::RateTerm>& rates,
                         const std::vector<std::string>& assumptions,
                         const std::vector<std::string>& not_modelled,
                         const ReportStyle& style) {
  if (style.sources) {
    return following_tables(rate_tables(rates), style) + list_text("Assumed", assumptions) +
           list_text("Not modelled", not_modelled);
  }
  return fmt::format(
      "\n--sources shows where these numbers come from: {} rates, {} assumptions, and {} things "
      "that are not modelled\n",
      rates.size(),
      assumptions.size(),
      not_modelled.size());
}

/// All tables of the report; each is one of estimate_text().
std::vector<TitledTable> estimate_tables(const ClusterEstimate& estimate,
                                         const ReportStyle& style) {
  std::vector<TitledTable> tables = {rank_class_table(estimate.verdict, estimate.rank_classes)};
  const auto add = [&](std::vector<TitledTable> more) {
    for (TitledTable& table : more) tables.push_back(std::move(table));
  };
  if (const auto* worst = worst_class(estimate.verdict, estimate.rank_classes)) {
    add(worst_rank_tables(*worst, style));
  }
  tables.push_back(time_table(estimate.time));
  add(training_tables(estimate.training));
  if (!estimate.advice.empty()) tables.push_back(advice_table(estimate));
  add(textbook_tables(estimate));
  if (style.sources) add(rate_tables(estimate.rates));
  return tables;
}

}  // namespace

std::string estimate_text(const ClusterEstimate& estimate, const ReportStyle& style) {
  if (style.format == TableFormat::kCsv) return tables_in(estimate_tables(estimate, style), style);
  return rank_class_table(estimate.verdict, estimate.rank_classes).in(style) +
         worst_rank_text(estimate.verdict, estimate.rank_classes, style) +
         host_memory_text(estimate) + "\n" + time_table(estimate.time).in(style) +
         measured_step_text(estimate.measured_step) + throughput_text(estimate) +
         board_text(estimate) + rank_step_text(estimate) + training_text(estimate.training, style) +
         advice_text(estimate, style) +
         (estimate.verdict.fits() && estimate.advice.empty()
              ? "\n`--advice always` tries what would save memory or time, though the plan fits\n"
              : "") +
         following_tables(textbook_tables(estimate), style) +
         sources_text(estimate.rates, estimate.assumptions, estimate.not_modelled, style);
}

std::string program_estimate_text(const estimator::ProgramEstimate& estimate,
                                  const ReportStyle& style) {
  if (style.format == TableFormat::kCsv) {
    return rank_class_table(estimate.verdict, estimate.ranks).in(style) +
           (estimate.time ? "\n" + tables_in(program_time_tables(*estimate.time), style) : "");
  }
  return verdict_text(estimate.verdict) + "\n" +
         rank_class_table(estimate.verdict, estimate.ranks).in(style) +
         worst_rank_text(estimate.verdict, estimate.ranks, style) +
         (estimate.time ? program_time_text(estimate) : "") +
         sources_text(estimate.time ? estimate.time->rates : std::vector<estimator::RateTerm>{},
                      estimate.assumptions,
                      estimate.not_modelled,
                      style);
}

}  // namespace sim
