#include "sim/cli/report/comm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/base/document.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

std::string rate(double bytes_per_second) { return fmt::format("{:.2f}", bytes_per_second / 1e9); }
std::string microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

bool is_compared(const CommReport& report) {
  return std::any_of(report.points.begin(), report.points.end(), [](const CommPoint& point) {
    return point.measured_seconds.has_value();
  });
}

Table table_of(const CommReport& report) {
  std::vector<Column> columns = {{"size (B)"},
                                 {"algorithm", Align::kLeft},
                                 {"protocol", Align::kLeft},
                                 {"time (us)"},
                                 {"algbw (GB/s)"},
                                 {"busbw (GB/s)"}};
  const bool compared = is_compared(report);
  if (compared) {
    columns.insert(columns.end(), {{"measured (us)"}, {"measured busbw (GB/s)"}, {"error"}});
  }
  columns.push_back({"source", Align::kLeft});
  Table table(columns);
  for (const CommPoint& point : report.points) {
    std::vector<std::string> cells = {std::to_string(point.bytes),
                                      point.algorithm.value_or("-"),
                                      point.protocol.value_or("-"),
                                      microseconds(point.seconds),
                                      rate(point.algorithm_bytes_per_second),
                                      rate(point.bus_bytes_per_second)};
    if (compared) {
      cells.push_back(microseconds(*point.measured_seconds));
      cells.push_back(rate(*point.measured_bus_bytes_per_second));
      cells.push_back(fmt::format("{:+.1f} %", 100 * *point.error));
    }
    cells.push_back(estimator::to_string(point.source));
    table.add_row(std::move(cells));
  }
  return table;
}

std::string comparison_of(const CommReport& report) {
  double sum = 0, worst = 0;
  for (const CommPoint& point : report.points) {
    sum += std::abs(*point.error);
    worst = std::max(worst, std::abs(*point.error));
  }
  return fmt::format("Error of the time: {:.1f} % in the mean of sizes, {:.1f} % at worst",
                     100 * sum / static_cast<double>(report.points.size()),
                     100 * worst);
}

}  // namespace

std::string comm_text(const CommReport& report, const ReportStyle& style) {
  if (style.format == TableFormat::kJson) return estimator::document_text(report);
  TitledTable titled{
      .title = fmt::format("{} over {} ranks, {} on each machine: {}, {}{}",
                           report.collective,
                           report.ranks,
                           report.ranks_per_node,
                           report.gpu,
                           report.intra_link,
                           report.ranks > report.ranks_per_node ? ", " + report.inter_link : ""),
      .table = table_of(report),
      .notes = {}};
  if (is_compared(report)) titled.notes.push_back(comparison_of(report));
  for (const std::string& note : report.assumptions) titled.notes.push_back("assumed: " + note);
  return titled.in(style);
}

}  // namespace sim
