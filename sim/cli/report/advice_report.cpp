#include "sim/cli/report/advice_report.h"

#include <fmt/format.h>

#include <cmath>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "sim/cli/report/step_report.h"

namespace sim {
namespace {

using estimator::ClusterEstimate;
using estimator::format_duration;
using estimator::format_gib;

std::string saved_memory_text(int64_t bytes) {
  const std::string amount = format_gib(std::abs(bytes));
  if (amount == format_gib(0)) return "saves no memory";
  return bytes > 0 ? "saves " + amount : fmt::format("needs {} more", amount);
}

std::string saved_time_text(double seconds, double iteration_seconds) {
  constexpr double kSmallestShare = 5e-4;  // of the iteration: nobody would tell the two apart
  if (std::abs(seconds) < kSmallestShare * iteration_seconds) return "the iteration takes as long";
  return fmt::format("the iteration is {} {}",
                     format_duration(std::abs(seconds)),
                     seconds < 0 ? "longer" : "shorter");
}

}  // namespace

std::string gains_text(const estimator::Advice& advice, double iteration_seconds) {
  std::string text;
  if (advice.gain_bytes) text = saved_memory_text(*advice.gain_bytes);
  if (advice.gain_seconds) {
    text += (text.empty() ? "" : "; ") + saved_time_text(*advice.gain_seconds, iteration_seconds);
  }
  return text;
}

TitledTable advice_table(const ClusterEstimate& estimate) {
  Table table({{"", Align::kRight, "", "number"},
               {"priority", Align::kLeft},
               {"change", Align::kLeft},
               {"gain", Align::kLeft},
               {"flags", Align::kLeft}});
  int number = 0;
  for (const estimator::Advice& item : estimate.advice) {
    table.add_row({std::to_string(++number),
                   estimator::to_string(item.priority),
                   item.text,
                   gains_text(item, step_seconds(estimate)),
                   item.flags});
  }
  return {.title = "What would help, each run", .table = std::move(table), .notes = {}};
}

std::string advice_text(const ClusterEstimate& estimate, const ReportStyle& style) {
  if (estimate.advice.empty()) return "";
  if (style.format != TableFormat::kText) return "\n" + advice_table(estimate).in(style);
  std::string text = "\nWhat would help, each run; and what to type for it\n";
  int number = 0;
  for (const estimator::Advice& item : estimate.advice) {
    const std::string gains = gains_text(item, step_seconds(estimate));
    text += fmt::format("  {}. {}: {}{}{}\n     {}\n",
                        ++number,
                        estimator::to_string(item.priority),
                        item.text,
                        gains.empty() ? "" : "; ",
                        gains,
                        item.flags);
  }
  return text;
}

}  // namespace sim
