#include "sim/cli/report/sweep_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/document.h"
#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/what_if/option_paths.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::Sweep;
using estimator::SweepLimit;
using estimator::SweepPoint;
using estimator::SweepResult;
using estimator::SweepScaling;

constexpr std::size_t kMostLimits = 12;
constexpr std::string_view kPeakBytes = "peak_bytes", kStepSeconds = "iteration_seconds";
constexpr double kLeastGib = 0.01 * static_cast<double>(estimator::kGiB);
constexpr double kLeastSeconds = 1e-6;

std::string mib_text(double bytes) {
  return fmt::format("{:.2f}", bytes / static_cast<double>(estimator::kMiB));
}

std::vector<Column> axis_columns(const Sweep& sweep) {
  std::vector<Column> columns;
  for (const estimator::SweepAxis& axis : sweep.axes) columns.push_back({axis.flag});
  return columns;
}

/// Each different refusal once, in the order of the points.
std::vector<std::string> refusals_of(const Sweep& sweep) {
  std::vector<std::string> refusals;
  for (const SweepPoint& point : sweep.points) {
    if (point.refusal && !estimator::contains(refusals, *point.refusal)) {
      refusals.push_back(*point.refusal);
    }
  }
  return refusals;
}

std::string refusal_mark(const std::vector<std::string>& refusals, const std::string& refusal) {
  const auto found = std::find(refusals.begin(), refusals.end(), refusal);
  return fmt::format("cannot be [{}]", found - refusals.begin() + 1);
}

/// The row with empty cells where there is no result, and the verdict.
std::vector<std::string> row_of(const SweepPoint& point,
                                std::size_t cells,
                                std::vector<std::string> (*cells_of)(const SweepResult&),
                                const std::string& verdict) {
  std::vector<std::string> row = point.values;
  const std::vector<std::string> more =
      point.result ? cells_of(*point.result) : std::vector<std::string>(cells, "");
  row.insert(row.end(), more.begin(), more.end());
  row.push_back(verdict);
  return row;
}

bool has_efficiency(const Sweep& sweep) {
  return std::any_of(sweep.points.begin(), sweep.points.end(), [](const SweepPoint& point) {
    return point.result && point.result->scaling_efficiency;
  });
}

std::vector<std::string> shown_cells(const SweepResult& result) {
  std::vector<std::string> cells = {gib(result.peak_bytes),
                                    gib(result.headroom_bytes),
                                    estimator::format_duration(result.iteration_seconds),
                                    estimator::whole_with_commas(result.tokens_per_second),
                                    fmt::format("{:.2f}", result.samples_per_second),
                                    fmt::format("{:.1f} %", 100 * result.mfu),
                                    mib_text(result.bytes_per_token)};
  if (const auto& efficiency = result.scaling_efficiency) {
    cells.push_back(fmt::format("{:.1f} %", 100 * *efficiency));
  }
  return cells;
}

std::vector<Column> result_columns() {
  constexpr const char* kStep = "computed: a replay of the schedule of all stages";
  return {{"peak GiB", Align::kRight, "simulated, and assumed for CUDA context and communicators"},
          {"free GiB", Align::kRight, "the GPU's memory less the peak"},
          {"step", Align::kRight, kStep},
          {"tokens/s", Align::kRight, "tokens of a step over its time"},
          {"samples/s", Align::kRight, "samples of a step over its time"},
          {"MFU", Align::kRight, "computed, of the published dense peak; Megatron-LM's count"},
          {"peak MiB/token",
           Align::kRight,
           "the whole peak, with context and communicators, over the tokens of a micro-batch"}};
}

/// Whether an axis sets this key.
bool is_swept(const Sweep& sweep, std::string_view path) {
  return std::any_of(sweep.axes.begin(), sweep.axes.end(), [&](const estimator::SweepAxis& axis) {
    return axis.path == path;
  });
}

/// Where no framework is given it follows from the ZeRO stage.
std::vector<std::string> framework_notes(const Sweep& sweep) {
  std::set<std::string> frameworks;
  for (const SweepPoint& point : sweep.points) {
    if (point.result) frameworks.insert(point.result->framework);
  }
  if (is_swept(sweep, "training.framework") || frameworks.size() < 2) return {};
  return {fmt::format("the rows are not of one framework ({}): --framework NAME keeps it",
                      fmt::join(frameworks, ", "))};
}

TitledTable point_table(const Sweep& sweep) {
  std::vector<Column> columns = axis_columns(sweep);
  for (const Column& column : result_columns()) columns.push_back(column);
  if (has_efficiency(sweep)) {
    columns.push_back({"scaling",
                       Align::kRight,
                       "tokens/s of a GPU over those with the fewest GPUs of the sweep"});
  }
  columns.push_back({"", Align::kLeft, "", "verdict"});
  const std::size_t cells = columns.size() - sweep.axes.size() - 1;
  Table table(std::move(columns));
  const std::vector<std::string> refusals = refusals_of(sweep);
  for (const SweepPoint& point : sweep.points) {
    const std::string verdict = point.refusal ? refusal_mark(refusals, *point.refusal)
                                              : estimator::fit_words(point.result->outcome);
    table.add_row(row_of(point, cells, shown_cells, verdict));
  }
  TitledTable titled{.title = "", .table = std::move(table), .notes = framework_notes(sweep)};
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    titled.notes.push_back(fmt::format("[{}] {}", i + 1, refusals[i]));
  }
  return titled;
}

std::vector<std::string> raw_cells(const SweepResult& result) {
  std::vector<std::string> cells = {std::to_string(result.peak_bytes),
                                    std::to_string(result.headroom_bytes),
                                    fmt::format("{}", result.iteration_seconds),
                                    fmt::format("{}", result.tokens_per_second),
                                    fmt::format("{}", result.samples_per_second),
                                    fmt::format("{}", result.mfu),
                                    fmt::format("{}", result.bytes_per_token)};
  if (const auto& efficiency = result.scaling_efficiency) {
    cells.push_back(fmt::format("{}", *efficiency));
  }
  return cells;
}

std::string csv_text(const Sweep& sweep) {
  std::vector<Column> columns = axis_columns(sweep);
  for (const char* title : {"peak_bytes",
                            "headroom_bytes",
                            "iteration_seconds",
                            "tokens_per_second",
                            "samples_per_second",
                            "mfu",
                            "bytes_per_token"}) {
    columns.push_back({title});
  }
  if (has_efficiency(sweep)) columns.push_back({"scaling_efficiency"});
  columns.push_back({"outcome"});
  const std::size_t cells = columns.size() - sweep.axes.size() - 1;
  Table table(std::move(columns));
  for (const SweepPoint& point : sweep.points) {
    table.add_row(row_of(point,
                         cells,
                         raw_cells,
                         point.refusal ? *point.refusal : to_string(point.result->outcome)));
  }
  return table.csv();
}

/// "21.30 GiB + 9.40 GiB x --mbs", of a linear law that grows from more than nothing.
std::string law_text(const SweepScaling& scaling) {
  const bool is_line = scaling.exponent && *scaling.exponent == 1;
  if (!is_line || *scaling.offset <= 0 || *scaling.factor <= 0) return "";
  const auto amount = [&](double value) {
    return scaling.quantity == kPeakBytes ? estimator::format_gib(std::llround(value))
                                          : estimator::format_duration(value);
  };
  // Of a long sequence or a large batch, the amount of one is too small to be read.
  const double least = scaling.quantity == kPeakBytes ? kLeastGib : kLeastSeconds;
  if (*scaling.factor < least) return "";
  return fmt::format(
      "{} + {} x {}", amount(*scaling.offset), amount(*scaling.factor), scaling.flag);
}

/// The laws of one quantity along one axis, at all values of the other axes.
using Laws = std::vector<const SweepScaling*>;

/// "linear", or "linear (5 of 9), less than linear (4 of 9)".
std::string words_of(const Laws& laws) {
  std::map<std::string, std::size_t> counts;
  for (const SweepScaling* law : laws) ++counts[law->words];
  if (counts.size() == 1) return laws.front()->words;
  std::vector<std::pair<std::size_t, std::string>> most_first;
  most_first.reserve(counts.size());
  for (const auto& [words, count] : counts) most_first.emplace_back(count, words);
  std::stable_sort(most_first.begin(), most_first.end(), [](const auto& a, const auto& b) {
    return a.first > b.first;
  });
  std::string text;
  for (const auto& [count, words] : most_first) {
    text += fmt::format("{}{} ({} of {})", text.empty() ? "" : ", ", words, count, laws.size());
  }
  return text;
}

/// "1.00", or "0.93 to 1.12".
std::string exponents_of(const Laws& laws) {
  std::vector<double> exponents;
  for (const SweepScaling* law : laws) {
    if (law->exponent) exponents.push_back(*law->exponent);
  }
  if (exponents.empty()) return "";
  const auto [least, most] = std::minmax_element(exponents.begin(), exponents.end());
  const std::string from = fmt::format("{:.2f}", *least), to = fmt::format("{:.2f}", *most);
  return from == to ? from : from + " to " + to;
}

/// Sequences of a step.
int64_t batch_of(const SweepResult& result) {
  return std::llround(result.samples_per_second * result.iteration_seconds);
}

/// Where the batch is not given it follows from the data ranks, and a step is another one.
std::vector<std::string> batch_notes(const Sweep& sweep) {
  std::set<int64_t> batches;
  for (const SweepPoint& point : sweep.points) {
    if (point.result) batches.insert(batch_of(*point.result));
  }
  if (is_swept(sweep, estimator::paths::kGlobalBatch) || batches.size() < 2) return {};
  return {
      fmt::format("the global batch is not the same in all rows ({} to {} sequences), so that "
                  "step times are of different work: --global-batch-size N keeps it",
                  *batches.begin(),
                  *batches.rbegin())};
}

TitledTable growth_table(const Sweep& sweep) {
  Table table({{"with", Align::kLeft},
               {"grows", Align::kLeft},
               {"exponent"},
               {"how", Align::kLeft},
               {"", Align::kLeft, "", "note"}});
  for (const estimator::SweepAxis& axis : sweep.axes) {
    for (const std::string_view quantity : {kPeakBytes, kStepSeconds}) {
      Laws laws;
      for (const SweepScaling& scaling : sweep.scaling) {
        if (scaling.flag == axis.flag && scaling.quantity == quantity) laws.push_back(&scaling);
      }
      if (laws.empty()) continue;
      table.add_row({axis.flag,
                     quantity == kPeakBytes ? "peak memory" : "step time",
                     exponents_of(laws),
                     words_of(laws),
                     laws.size() == 1 ? law_text(*laws.front()) : ""});
    }
  }
  return {.title = "How memory and time grow along each flag (offset + factor x value^exponent)",
          .table = std::move(table),
          .notes = batch_notes(sweep)};
}

std::string limit_line(const SweepLimit& limit) {
  const std::string at = limit.others.empty() ? "" : fmt::format(" (at {})", limit.others);
  return fmt::format(
      "{} {} fits, {} {}{}{}",
      limit.flag,
      *limit.last_that_fits,
      *limit.first_that_does_not,
      limit.outcome == estimator::Fit::kTooClose ? "is too close to call" : "does not",
      limit.estimated ? fmt::format("; by the law the limit is at {:.4g}", *limit.estimated) : "",
      at);
}

std::string limits_text(const Sweep& sweep) {
  if (sweep.limits.empty()) return "";
  std::string text = "\nWhere it stops fitting\n";
  std::size_t shown = 0;
  for (const SweepLimit& limit : sweep.limits) {
    if (++shown > kMostLimits) break;
    text += "  " + limit_line(limit) + "\n";
  }
  if (shown > kMostLimits) {
    text +=
        fmt::format("  and {} more (--format json has all)\n", sweep.limits.size() - kMostLimits);
  }
  return text;
}

}  // namespace

std::string fastest_text(const Sweep& sweep) {
  const SweepPoint* fastest = nullptr;
  for (const SweepPoint& point : sweep.points) {
    if (!point.result || point.result->outcome != estimator::Fit::kFits) continue;
    const bool is_better =
        fastest == nullptr || point.result->tokens_per_second > fastest->result->tokens_per_second;
    if (is_better) fastest = &point;
  }
  if (fastest == nullptr) return "None of them surely fits.";
  std::string flags;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    flags += fmt::format("{} {} ", sweep.axes[a].flag, fastest->values[a]);
  }
  flags.pop_back();
  return fmt::format("Most tokens/s of those that fit: {} ({} tokens/s, MFU {:.1f} %)",
                     flags,
                     estimator::whole_with_commas(fastest->result->tokens_per_second),
                     100 * fastest->result->mfu);
}

std::vector<TitledTable> sweep_tables(const Sweep& sweep) {
  std::vector<TitledTable> tables = {point_table(sweep)};
  if (!sweep.scaling.empty()) tables.push_back(growth_table(sweep));
  return tables;
}

std::vector<std::string> sweep_limits(const Sweep& sweep) {
  std::vector<std::string> lines;
  for (const SweepLimit& limit : sweep.limits) lines.push_back(limit_line(limit));
  return lines;
}

std::string sweep_text(const Sweep& sweep, const ReportStyle& style) {
  if (style.format == TableFormat::kJson) return estimator::document_text(sweep);
  if (style.format == TableFormat::kCsv) return csv_text(sweep);
  return tables_in(sweep_tables(sweep), style) + limits_text(sweep) + "\n" + fastest_text(sweep) +
         "\n";
}

}  // namespace sim
