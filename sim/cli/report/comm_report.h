// The output of `onerank comm`: the time of a collective by size, by the model and as measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/communication/communication_time.h"
#include "sim/cli/report/report_style.h"

namespace sim {

struct CommPoint {
  int64_t bytes = 0;
  double seconds = 0;
  double algorithm_bytes_per_second = 0;
  double bus_bytes_per_second = 0;
  std::optional<std::string> algorithm;  ///< empty for messages and for measured times
  std::optional<std::string> protocol;
  estimator::Source source = estimator::Source::kComputed;
  std::optional<double> measured_seconds;
  std::optional<double> measured_bus_bytes_per_second;
  std::optional<double> error;  ///< relative to the measured time: 0.1 is 10 % too long
};
template <class Visitor>
void visit_fields(Visitor& visit, CommPoint& point) {
  visit("bytes", point.bytes, "nccl-tests' size");
  visit("seconds", point.seconds, "predicted");
  visit("algorithm_bytes_per_second", point.algorithm_bytes_per_second, "bytes over seconds");
  visit("bus_bytes_per_second", point.bus_bytes_per_second, "nccl-tests' bus bandwidth");
  visit("algorithm", point.algorithm, "what NCCL chooses");
  visit("protocol", point.protocol, "what NCCL chooses");
  visit("source", point.source, "computed, or measured");
  visit("measured_seconds", point.measured_seconds, "of the file to compare with");
  visit("measured_bus_bytes_per_second", point.measured_bus_bytes_per_second, "of that file");
  visit("error", point.error, "of the measured time");
}

struct CommReport {
  estimator::DocumentHead head{1, "collective_times"};
  std::string collective;
  std::string gpu;
  std::string intra_link;
  std::string inter_link;
  int64_t ranks = 0;
  int64_t ranks_per_node = 0;
  std::vector<CommPoint> points;
  std::vector<std::string> assumptions;
};
template <class Visitor>
void visit_fields(Visitor& visit, CommReport& report) {
  visit_head(visit, report.head);
  visit("collective", report.collective, "which");
  visit("gpu", report.gpu, "of the machines");
  visit("intra_link", report.intra_link, "inside a machine");
  visit("inter_link", report.inter_link, "between machines");
  visit("ranks", report.ranks, "of the group");
  visit("ranks_per_node", report.ranks_per_node, "of the group");
  visit("points", report.points, "by size");
  visit("assumptions", report.assumptions, "numbers that were assumed");
}

/// A row for each size; in JSON the whole report.
std::string comm_text(const CommReport& report, const ReportStyle& style);

}  // namespace sim
