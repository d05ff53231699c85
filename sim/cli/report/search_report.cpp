#include "sim/cli/report/search_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/base/document.h"
#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::FoundLayout;
using estimator::Search;
using estimator::with_commas;
using estimator::WorldSearch;

constexpr std::size_t kMostOfTheFront = 12;
constexpr std::size_t kMostReasons = 3;

/// Where slower layouts were not composed, what stands of composed ones is not of all.
bool is_bounded(const Search& search) { return search.layouts_slower > 0; }

std::string front_title(const Search& search) {
  return fmt::format(
      "The trade between speed, free memory, GPUs and cost (Pareto front{})",
      is_bounded(search) ? " of the layouts composed; --all for the whole front" : ", composed");
}

/// In CSV a number of seconds, for programs.
std::string step_text(double seconds, const ReportStyle& style) {
  return style.format == TableFormat::kCsv ? fmt::format("{:.6g}", seconds)
                                           : estimator::format_duration(seconds);
}

/// The title of such cells; CSV names what stands in a column a second time.
Column step_column(const ReportStyle& style, const char* source = "") {
  return {style.format == TableFormat::kCsv ? "step, s" : "step", Align::kRight, source};
}

Column composed_column(const ReportStyle& style, const char* of) {
  return {style.format == TableFormat::kCsv ? fmt::format("{}, composed", of) : "composed",
          Align::kRight,
          "how far the figure of executed pieces is off"};
}

/// The last one, for those who copy.
Column command_column() { return {"command", Align::kLeft, "what to type to estimate it"}; }

/// "2,520 layouts: stages do not divide the layers", the most frequent ones.
std::vector<std::string> reasons(const WorldSearch& world) {
  std::vector<std::string> lines;
  for (const estimator::RefusalCount& refusal : world.refusals) {
    if (lines.size() == kMostReasons) break;
    lines.push_back(fmt::format("{} of {} layouts: {}",
                                with_commas(refusal.layouts),
                                with_commas(world.layouts),
                                refusal.what));
  }
  return lines;
}

/// Why there is no layout at all on some number of GPUs, and of which layouts the table speaks.
std::vector<std::string> worlds_notes(const Search& search) {
  std::vector<std::string> notes;
  for (const WorldSearch& world : search.worlds) {
    if (world.refused < world.layouts) continue;
    notes.push_back(fmt::format("no layout is allowed on {} GPUs:", with_commas(world.gpus)));
    for (const std::string& reason : reasons(world)) notes.push_back("  " + reason);
  }
  if (is_bounded(search)) {
    notes.emplace_back(
        "fit, too close and least memory are of the layouts composed; --all composes all");
  }
  return notes;
}

int64_t peak_of(const FoundLayout& found) {
  return found.executed_peak_bytes.value_or(found.peak_bytes);
}

TitledTable worlds_table(const Search& search) {
  Table table({{"GPUs"},
               {"layouts"},
               {"not allowed"},
               {"fit"},
               {"too close"},
               {"least memory, GiB"},
               {"with", Align::kLeft}});
  for (const WorldSearch& world : search.worlds) {
    table.add_row({with_commas(world.gpus),
                   with_commas(world.layouts),
                   with_commas(world.refused),
                   with_commas(world.fits),
                   with_commas(world.too_close),
                   world.leanest ? gib(peak_of(*world.leanest)) : "",
                   world.leanest ? world.leanest->flags : ""});
  }
  return {.title = "", .table = std::move(table), .notes = worlds_notes(search)};
}

/// "0.4 %": how far the composed figure is from the executed one.
std::string error_text(double composed, double executed) {
  return fmt::format("{:+.1f} %", 100 * (composed / executed - 1));
}

std::string best_title(const Search& search, bool was_executed) {
  if (!was_executed) return "The fastest that fit, composed";
  const std::string which =
      search.faster_untried == 0
          ? "The fastest that fit, executed whole"
          : fmt::format(
                "Layouts that fit, executed whole; {} that may fit and be faster were not "
                "executed (--top N for more)",
                with_commas(search.faster_untried));
  return which + "; composed: how far the composed figure is off";
}

TitledTable best_table(const Search& search, const ReportStyle& style) {
  const bool was_executed = search.best.front().executed_iteration_seconds.has_value();
  Table table({step_column(style, "computed: a replay of the schedule of all stages"),
               composed_column(style, "step"),
               {"tokens/s", Align::kRight, "tokens of a step over its time"},
               {"MFU", Align::kRight, "computed, of the published dense peak"},
               {"peak GiB", Align::kRight, "simulated, and assumed for context and communicators"},
               composed_column(style, "peak"),
               {"GPUs"},
               {"verdict", Align::kLeft},
               {"flags", Align::kLeft},
               command_column()});
  for (const FoundLayout& found : search.best) {
    const double seconds = found.executed_iteration_seconds.value_or(found.iteration_seconds);
    const int64_t peak = peak_of(found);
    table.add_row(
        {step_text(seconds, style),
         was_executed ? error_text(found.iteration_seconds, seconds) : "",
         estimator::whole_with_commas(found.tokens_per_second),
         fmt::format("{:.1f} %", 100 * found.mfu),
         gib(peak),
         was_executed ? error_text(static_cast<double>(found.peak_bytes), static_cast<double>(peak))
                      : "",
         with_commas(found.gpus),
         estimator::fit_words(found.executed_outcome.value_or(found.outcome)),
         found.flags,
         found.command});
  }
  return {.title = best_title(search, was_executed), .table = std::move(table), .notes = {}};
}

/// In text they stand below the table, where they can be copied.
TitledTable without_commands(TitledTable table) {
  table.table = table.table.without_last_column();
  return table;
}

bool has_layouts(const Search& search) {
  return std::any_of(search.worlds.begin(), search.worlds.end(), [](const WorldSearch& world) {
    return world.refused < world.layouts;
  });
}

std::string none_text(const Search& search) {
  if (!has_layouts(search)) return "\nThere is no layout to compose.\n";
  const bool fits = std::any_of(search.worlds.begin(),
                                search.worlds.end(),
                                [](const WorldSearch& world) { return world.fits > 0; });
  return fits ? "\nNo layout that surely fits was executed whole.\n"
              : "\nNone of the layouts surely fits.\n";
}

std::string best_text(const Search& search, const ReportStyle& style) {
  if (search.best.empty()) return none_text(search);
  if (style.format == TableFormat::kMarkdown) return "\n" + best_table(search, style).in(style);
  std::string text =
      "\n" + without_commands(best_table(search, style)).in(style) + "\nTo estimate them\n";
  for (const FoundLayout& found : search.best) text += "  " + found.command + "\n";
  return text;
}

/// Why a number of GPUs does not hold the model.
std::string obstacle_text(const Search& search, const WorldSearch& world) {
  if (world.refused == world.layouts) return "no layout is allowed";
  if (!world.leanest && search.interrupted) return "no layout was composed";
  if (!world.leanest) return "each layout surely needs more than a GPU has";
  const FoundLayout& leanest = *world.leanest;
  const std::string free = leanest.kept_free_bytes > 0
                               ? fmt::format(", of which {} are to stay free",
                                             estimator::format_gib(leanest.kept_free_bytes))
                               : "";
  return fmt::format("the leanest layout needs {} of {}{} ({})",
                     estimator::format_gib(peak_of(leanest)),
                     estimator::format_gib(leanest.capacity_bytes),
                     free,
                     leanest.flags);
}

}  // namespace

std::string fewest_text(const Search& search) {
  if (search.worlds.size() < 2) return "";
  std::string text = "No number of GPUs in this search holds it.\n";
  if (search.fewest_gpus) {
    text = fmt::format("Fewest GPUs that hold it: {}\n", with_commas(*search.fewest_gpus));
  }
  for (const WorldSearch& world : search.worlds) {
    if (search.fewest_gpus && world.gpus >= *search.fewest_gpus) break;
    text += fmt::format("  on {} {}\n", with_commas(world.gpus), obstacle_text(search, world));
  }
  return text;
}

namespace {

Table front_table(const Search& search, std::size_t most, const ReportStyle& style) {
  const bool has_prices =
      !search.pareto.empty() && search.pareto.front().usd_per_million_tokens.has_value();
  std::vector<Column> columns = {step_column(style), {"free GiB"}, {"GPUs"}, {"tokens/s"}, {"MFU"}};
  if (has_prices) columns.push_back({"dollars/1M tokens"});
  columns.push_back({"flags", Align::kLeft});
  columns.push_back(command_column());
  Table table(std::move(columns));
  for (std::size_t i = 0; i < std::min(most, search.pareto.size()); ++i) {
    const FoundLayout& found = search.pareto[i];
    std::vector<std::string> row = {step_text(found.iteration_seconds, style),
                                    gib(found.headroom_bytes),
                                    with_commas(found.gpus),
                                    estimator::whole_with_commas(found.tokens_per_second),
                                    fmt::format("{:.1f} %", 100 * found.mfu)};
    if (has_prices) row.push_back(fmt::format("{:.4f}", *found.usd_per_million_tokens));
    row.push_back(found.flags);
    row.push_back(found.command);
    table.add_row(std::move(row));
  }
  return table;
}

std::string front_text(const Search& search, const ReportStyle& style) {
  if (search.pareto.size() < 2) return "";
  TitledTable front{.title = front_title(search),
                    .table = front_table(search, kMostOfTheFront, style),
                    .notes = {}};
  if (style.format == TableFormat::kText) front = without_commands(std::move(front));
  if (search.pareto.size() > kMostOfTheFront) {
    front.notes.push_back(fmt::format("and {} more (--format csv or json has all)",
                                      search.pareto.size() - kMostOfTheFront));
  }
  return "\n" + front.in(style);
}

double mean_size(const Search& search, double (*error)(const FoundLayout&)) {
  double sum = 0;
  for (const FoundLayout& found : search.checked) sum += std::abs(error(found));
  return 100 * sum / static_cast<double>(search.checked.size());
}

double error_of_peak(const FoundLayout& found) {
  return static_cast<double>(found.peak_bytes) / static_cast<double>(*found.executed_peak_bytes) -
         1;
}

double error_of_allocated(const FoundLayout& found) {
  return static_cast<double>(found.allocated_bytes) /
             static_cast<double>(*found.executed_allocated_bytes) -
         1;
}

double error_of_step(const FoundLayout& found) {
  return found.iteration_seconds / *found.executed_iteration_seconds - 1;
}

TitledTable checked_table(const Search& search, const ReportStyle& style) {
  const auto percent = [](double error) { return fmt::format("{:+.2f} %", 100 * error); };
  Table table({step_column(style),
               composed_column(style, "step"),
               {"peak GiB"},
               composed_column(style, "peak"),
               {"allocated, composed"},
               {"flags", Align::kLeft}});
  for (const FoundLayout& found : search.checked) {
    table.add_row({step_text(*found.executed_iteration_seconds, style),
                   percent(error_of_step(found)),
                   gib(*found.executed_peak_bytes),
                   percent(error_of_peak(found)),
                   percent(error_of_allocated(found)),
                   found.flags});
  }
  return {
      .title =
          "A sample of all layouts, executed whole; composed: how far the composed figure "
          "is off",
      .table = std::move(table),
      .notes = {fmt::format("mean of the sizes: step {:.2f} %, peak {:.2f} %, allocated {:.2f} %",
                            mean_size(search, error_of_step),
                            mean_size(search, error_of_peak),
                            mean_size(search, error_of_allocated))}};
}

std::string checked_text(const Search& search, const ReportStyle& style) {
  return search.checked.empty() ? "" : "\n" + checked_table(search, style).in(style);
}

}  // namespace

std::string effort_text(const Search& search) {
  int64_t layouts = 0;
  for (const WorldSearch& world : search.worlds) layouts += world.layouts - world.refused;
  std::string text = fmt::format(
      "{} of {} layouts were composed from {} executed stages: {} to execute, {} to compose",
      with_commas(search.layouts_composed),
      with_commas(layouts),
      with_commas(search.pieces_run),
      estimator::format_duration(search.execute_seconds),
      estimator::format_duration(search.compose_seconds));
  if (search.layouts_too_large > 0) {
    text += fmt::format("; of {} the model's state alone is larger than a GPU",
                        with_commas(search.layouts_too_large));
  }
  if (search.layouts_hopeless > 0) {
    text += fmt::format("; {} need more memory than others that do not fit",
                        with_commas(search.layouts_hopeless));
  }
  if (search.layouts_too_full > 0) {
    text += fmt::format("; of {} the state and the activations are larger than a GPU",
                        with_commas(search.layouts_too_full));
  }
  if (search.layouts_slower > 0) {
    text += fmt::format("; {} are surely slower than the best (--all composes them, too)",
                        with_commas(search.layouts_slower));
  }
  return text;
}

std::string interrupted_text(const Search& search) {
  if (!search.interrupted) return "";
  return "Interrupted: this is what was found until then. With --store DIR the same command goes "
         "on where it was\n";
}

std::vector<TitledTable> search_tables(const Search& search, const ReportStyle& style) {
  std::vector<TitledTable> tables = {worlds_table(search)};
  if (!search.best.empty()) tables.push_back(best_table(search, style));
  if (search.pareto.size() > 1) {
    tables.push_back({front_title(search), front_table(search, search.pareto.size(), style), {}});
  }
  if (!search.checked.empty()) tables.push_back(checked_table(search, style));
  if (style.format == TableFormat::kCsv)
    tables.front().title = "The layouts of each number of GPUs";
  return tables;
}

std::string search_text(const Search& search, const ReportStyle& style) {
  if (style.format == TableFormat::kJson) return estimator::document_text(search);
  if (style.format == TableFormat::kCsv) return tables_in(search_tables(search, style), style);
  const std::string fewest = fewest_text(search);
  return worlds_table(search).in(style) + best_text(search, style) +
         (fewest.empty() ? "" : "\n" + fewest) + front_text(search, style) +
         checked_text(search, style) + "\n" + effort_text(search) + "\n" + interrupted_text(search);
}

}  // namespace sim
