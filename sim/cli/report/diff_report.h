// Two estimates, number by number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/json_value.h"
#include "estimator/base/option.h"
#include "estimator/cluster/cluster_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// A key of the resolved plans that differs. Values are JSON in text; "" if a plan lacks the key.
struct PlanDifference {
  std::string path;
  std::string first, second;
};
template <class Visitor>
void visit_fields(Visitor& visit, PlanDifference& difference) {
  visit("path", difference.path, "key of the resolved plan");
  visit("a", difference.first, "its value in A, as JSON");
  visit("b", difference.second, "its value in B, as JSON");
}

struct NumberDifference {
  std::string part;  ///< heading under which it is shown
  std::string name;
  std::string unit;  ///< "bytes", "seconds", "per_second", "flops_per_second", "ratio", "count"
  std::optional<double> first, second;  ///< empty: that side has no such number
};
template <class Visitor>
void visit_fields(Visitor& visit, NumberDifference& number) {
  std::optional<double> difference;
  if (number.first && number.second) difference = *number.second - *number.first;
  visit("part", number.part, "memory of the worst rank, the step, ...");
  visit("name", number.name, "of the number");
  visit("unit", number.unit, "bytes, seconds, per_second, flops_per_second, ratio or count");
  visit("a", number.first, "of A");
  visit("b", number.second, "of B");
  visit("difference", difference, "B - A");
}

struct EstimateDiff {
  estimator::DocumentHead head{1, "estimate_diff"};
  std::string first_name, second_name;
  std::string first_verdict, second_verdict;
  std::vector<PlanDifference> plan;
  std::vector<NumberDifference> numbers;
};
template <class Visitor>
void visit_fields(Visitor& visit, EstimateDiff& diff) {
  visit_head(visit, diff.head);
  visit("a", diff.first_name, "the first plan or estimate");
  visit("b", diff.second_name, "the second one");
  visit("a_verdict", diff.first_verdict, "fits or not");
  visit("b_verdict", diff.second_verdict, "fits or not");
  visit("plan", diff.plan, "what differs in the resolved plans");
  visit("numbers", diff.numbers, "number by number, the same where it does not differ");
}

/// An estimate, and the name by which the user knows it.
struct NamedEstimate {
  std::string name;
  estimator::ClusterEstimate estimate;
};

/// Throughput and training are of the measured steps (`--measured-step`) where both sides have one,
/// and else of the estimated ones, so that like is compared with like. Throws UserError if the plan
/// of a side with a measured step cannot be read.
EstimateDiff diff_of(const NamedEstimate& first, const NamedEstimate& second);

/// What differs in the plans, and the numbers part by part, without those that are 0 in both.
std::vector<TitledTable> diff_tables(const EstimateDiff& diff);

/// The differences in the format. Text and Markdown leave out numbers that are 0 in both.
std::string diff_text(const EstimateDiff& diff, const ReportStyle& style);

}  // namespace sim
