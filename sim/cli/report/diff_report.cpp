#include "sim/cli/report/diff_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/report/rank_memory_report.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::CategoryBytes;
using estimator::ClusterEstimate;
using estimator::Json;
using estimator::RankClassEstimate;

constexpr const char* kBytes = "bytes";
constexpr const char* kSeconds = "seconds";
constexpr const char* kRate = "per_second";
constexpr const char* kFlops = "flops_per_second";
constexpr const char* kRatio = "ratio";
constexpr const char* kCount = "count";

// ---- what differs

/// The leaves of an object by their path; a list is a leaf.
void collect_leaves(const Json& json,
                    const std::string& path,
                    std::vector<std::pair<std::string, std::string>>& leaves) {
  if (!json.is_object()) return void(leaves.emplace_back(path, json.dump()));
  for (const auto& [key, value] : json.items()) {
    collect_leaves(value, path.empty() ? key : fmt::format("{}.{}", path, key), leaves);
  }
}

std::vector<PlanDifference> plan_differences(const Json& first, const Json& second) {
  std::vector<std::pair<std::string, std::string>> of_first, of_second;
  collect_leaves(first, "", of_first);
  collect_leaves(second, "", of_second);
  const auto value_in = [](const auto& leaves, const std::string& path) {
    const auto found = std::find_if(
        leaves.begin(), leaves.end(), [&](const auto& leaf) { return leaf.first == path; });
    return found == leaves.end() ? std::string() : found->second;
  };
  std::vector<PlanDifference> differences;
  for (const auto& [path, value] : of_first) {
    const std::string other = value_in(of_second, path);
    if (other != value) differences.push_back({path, value, other});
  }
  for (const auto& [path, value] : of_second) {
    if (value_in(of_first, path).empty()) differences.push_back({path, "", value});
  }
  return differences;
}

const RankClassEstimate& worst_of(const ClusterEstimate& estimate) {
  const RankClassEstimate* const worst = worst_class(estimate.verdict, estimate.rank_classes);
  return worst == nullptr ? estimate.rank_classes.front() : *worst;
}

int64_t sum_of(const ClusterEstimate& estimate, int64_t RankClassEstimate::*number) {
  int64_t sum = 0;
  for (const RankClassEstimate& row : estimate.rank_classes) sum += row.count * (row.*number);
  return sum;
}

/// Adds numbers of both estimates under one heading.
class Part {
 public:
  Part(EstimateDiff& diff, std::string title) : diff_(diff), title_(std::move(title)) {}

  void add(const std::string& name,
           const char* unit,
           std::optional<double> first,
           std::optional<double> second) {
    diff_.numbers.push_back({title_, name, unit, first, second});
  }
  void add(const std::string& name, int64_t first, int64_t second) {
    add(name, kBytes, static_cast<double>(first), static_cast<double>(second));
  }

 private:
  EstimateDiff& diff_;
  const std::string title_;
};

void add_memory(const ClusterEstimate& a, const ClusterEstimate& b, EstimateDiff& diff) {
  const RankClassEstimate &first = worst_of(a), &second = worst_of(b);
  Part memory(diff, "memory of the worst rank");
  memory.add("total", first.total_bytes, second.total_bytes);
  memory.add("free", a.verdict.headroom_bytes, b.verdict.headroom_bytes);
  memory.add("reserved", first.reserved_peak_bytes, second.reserved_peak_bytes);
  memory.add("context", first.context_bytes, second.context_bytes);
  memory.add("communicators", first.communicator_bytes, second.communicator_bytes);
  memory.add("allocated", first.allocated_peak_bytes, second.allocated_peak_bytes);
  memory.add("host", first.host_bytes, second.host_bytes);
  if (first.peak_categories && second.peak_categories) {
    Part filled(diff, "what fills the allocated peak");
    for (const auto& entry : enum_names(estimator::MemoryCategory{})) {
      filled.add(entry.name,
                 (*first.peak_categories)[entry.value],
                 (*second.peak_categories)[entry.value]);
    }
  }
  Part all(diff, "the whole cluster");
  all.add("memory of all GPUs",
          sum_of(a, &RankClassEstimate::total_bytes),
          sum_of(b, &RankClassEstimate::total_bytes));
}

std::optional<double> measured_seconds(const ClusterEstimate& estimate) {
  if (!estimate.measured_step) return std::nullopt;
  return estimate.measured_step->seconds;
}

void add_measured_step(const ClusterEstimate& a, const ClusterEstimate& b, Part& step) {
  const auto first = measured_seconds(a), second = measured_seconds(b);
  if (!first && !second) return;
  const char* const side = first && second ? "" : first ? ", of A alone" : ", of B alone";
  step.add(fmt::format("iteration, measured{}", side), kSeconds, first, second);
}

void add_step(const ClusterEstimate& a, const ClusterEstimate& b, EstimateDiff& diff) {
  Part step(diff, "one iteration");
  step.add("iteration", kSeconds, a.time.iteration_seconds, b.time.iteration_seconds);
  add_measured_step(a, b, step);
  const std::vector<estimator::StepPart> before = step_parts(a.time), after = step_parts(b.time);
  for (std::size_t i = 0; i < before.size(); ++i) {
    step.add(before[i].name, kSeconds, before[i].seconds, after[i].seconds);
  }
}

/// With throughput and training of the estimated step, where the other side has no measured one.
ClusterEstimate comparable(ClusterEstimate estimate, const ClusterEstimate& other) {
  if (estimate.measured_step && !other.measured_step) {
    use_estimated_step(estimator::resolve_plan(estimate.plan.json(), {}), estimate);
  }
  return estimate;
}

/// Which steps throughput and training are of, where it has to be said.
const char* steps_text(const ClusterEstimate& a, const ClusterEstimate& b) {
  if (a.measured_step && b.measured_step) return ", of the measured steps";
  return a.measured_step || b.measured_step ? ", of the estimated steps" : "";
}

void add_throughput(const ClusterEstimate& of_a, const ClusterEstimate& of_b, EstimateDiff& diff) {
  const ClusterEstimate a = comparable(of_a, of_b), b = comparable(of_b, of_a);
  const std::string steps = steps_text(of_a, of_b);
  const estimator::Throughput &first = a.throughput, &second = b.throughput;
  Part throughput(diff, "throughput" + steps);
  throughput.add("tokens/s", kRate, first.tokens_per_second, second.tokens_per_second);
  throughput.add("tokens/s of a GPU",
                 kRate,
                 first.tokens_per_second_per_gpu,
                 second.tokens_per_second_per_gpu);
  throughput.add("model FLOP/s of a GPU",
                 kFlops,
                 first.model_flops_per_second_per_gpu,
                 second.model_flops_per_second_per_gpu);
  throughput.add("MFU", kRatio, first.mfu, second.mfu);
  throughput.add("HFU", kRatio, first.hfu, second.hfu);
  if (!a.training || !b.training) return;
  Part training(diff, "training" + steps);
  training.add("steps",
               kCount,
               static_cast<double>(a.training->steps),
               static_cast<double>(b.training->steps));
  training.add("expected time", kSeconds, a.training->seconds, b.training->seconds);
  training.add("goodput", kRatio, a.training->goodput, b.training->goodput);
  training.add("GPU hours", kCount, a.training->gpu_hours, b.training->gpu_hours);
}

// ---- how it is shown

std::string amount_text(double value, const std::string& unit) {
  if (unit == kBytes) return estimator::format_gib(std::llround(value));
  if (unit == kSeconds) {
    return value < 0 ? "-" + estimator::format_duration(-value) : estimator::format_duration(value);
  }
  if (unit == kFlops) return fmt::format("{:.1f} TFLOP/s", value / 1e12);
  if (unit == kRatio) return fmt::format("{:.1f} %", 100 * value);
  return std::abs(value) >= 1000 ? estimator::whole_with_commas(value)
                                 : fmt::format("{:.2f}", value);
}

std::string amount_text(std::optional<double> value, const std::string& unit) {
  return value ? amount_text(*value, unit) : "-";
}

std::string change_text(const NumberDifference& number) {
  if (!number.first || !number.second) return "";
  const double change = *number.second - *number.first;
  if (change == 0) return "";
  return change > 0 ? "+" + amount_text(change, number.unit) : amount_text(change, number.unit);
}

std::string percent_text(const NumberDifference& number) {
  if (!number.first || !number.second) return "";
  const double change = *number.second - *number.first;
  // Of what is missing, a share says nothing.
  const double percent = *number.first <= 0 ? 0 : 100 * change / *number.first;
  constexpr double kShown = 0.05;
  return std::abs(percent) < kShown ? "" : fmt::format("{:+.1f} %", percent);
}

TitledTable plan_table(const EstimateDiff& diff) {
  Table table({{"key", Align::kLeft}, {"A", Align::kLeft}, {"B", Align::kLeft}});
  for (const PlanDifference& row : diff.plan) table.add_row({row.path, row.first, row.second});
  return {.title = "What differs in the resolved plans", .table = std::move(table), .notes = {}};
}

/// The table of one part, which begins at `row`; sets `row` to the part after it.
Table number_table(const EstimateDiff& diff, std::size_t& row) {
  const std::string title = diff.numbers[row].part;
  Table table(
      {{title, Align::kLeft}, {"A"}, {"B"}, {"difference"}, {"", Align::kRight, "", "share"}});
  for (; row < diff.numbers.size() && diff.numbers[row].part == title; ++row) {
    const NumberDifference& number = diff.numbers[row];
    if (number.first == 0 && number.second == 0) continue;
    table.add_row({number.name,
                   amount_text(number.first, number.unit),
                   amount_text(number.second, number.unit),
                   change_text(number),
                   percent_text(number)});
  }
  return table;
}

std::string csv_of(const EstimateDiff& diff) {
  Table table({{"part"}, {"name"}, {"unit"}, {"a"}, {"b"}});
  for (const PlanDifference& row : diff.plan) {
    table.add_row({"plan", row.path, "", row.first, row.second});
  }
  for (const NumberDifference& row : diff.numbers) {
    table.add_row({row.part,
                   row.name,
                   row.unit,
                   row.first ? fmt::format("{}", *row.first) : "",
                   row.second ? fmt::format("{}", *row.second) : ""});
  }
  return table.csv();
}

}  // namespace

namespace {

std::string verdict_and_reason(const estimator::Verdict& verdict) {
  return fmt::format("{}: {}", estimator::fit_words(verdict.outcome), verdict.reason);
}

}  // namespace

EstimateDiff diff_of(const NamedEstimate& first, const NamedEstimate& second) {
  EstimateDiff diff;
  diff.first_name = first.name;
  diff.second_name = second.name;
  diff.first_verdict = verdict_and_reason(first.estimate.verdict);
  diff.second_verdict = verdict_and_reason(second.estimate.verdict);
  diff.plan = plan_differences(first.estimate.plan.json(), second.estimate.plan.json());
  add_memory(first.estimate, second.estimate, diff);
  add_step(first.estimate, second.estimate, diff);
  add_throughput(first.estimate, second.estimate, diff);
  return diff;
}

std::vector<TitledTable> diff_tables(const EstimateDiff& diff) {
  std::vector<TitledTable> tables;
  if (!diff.plan.empty()) tables.push_back(plan_table(diff));
  for (std::size_t row = 0; row < diff.numbers.size();) {
    tables.push_back({.title = "", .table = number_table(diff, row), .notes = {}});
  }
  return tables;
}

std::string diff_text(const EstimateDiff& diff, const ReportStyle& style) {
  if (style.format == TableFormat::kJson) return estimator::document_text(diff);
  if (style.format == TableFormat::kCsv) return csv_of(diff);
  return fmt::format("A  {}\n   {}\nB  {}\n   {}\n\n{}",
                     diff.first_name,
                     diff.first_verdict,
                     diff.second_name,
                     diff.second_verdict,
                     diff.plan.empty() ? "The resolved plans are equal\n\n" : "") +
         tables_in(diff_tables(diff), style);
}

}  // namespace sim
