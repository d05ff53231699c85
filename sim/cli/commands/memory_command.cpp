#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "estimator/profile/peak_snapshot.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/input/offered_words.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/page/rank_page.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/documents.h"
#include "sim/cli/report/module_report.h"
#include "sim/cli/report/profile_report.h"
#include "sim/cli/report/table.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::PeakAllocation;
using estimator::PeakSnapshot;

struct MemoryOptions {
  std::string path;
  std::string by = "category";
  std::string depth;
  std::string top = "20";
  bool drill_down = false;
  HtmlFlag html;
  TableFormatFlag format;
};

/// A way to sort allocations into groups.
struct Grouping {
  const char* name;
  std::string (*key)(const PeakAllocation&, const ModuleTableOptions&);
};

std::string shape_text(const PeakAllocation& allocation) {
  if (!allocation.shape) return "no tensor";
  return fmt::format(
      "{} {}", allocation.dtype.value_or(""), estimator::to_json(*allocation.shape).dump());
}

constexpr Grouping kGroupings[] = {
    {"category",
     [](const PeakAllocation& a, const ModuleTableOptions&) {
       return estimator::to_string(a.category);
     }},
    {"module",
     [](const PeakAllocation& a, const ModuleTableOptions& options) {
       return path_pattern(a.module, options);
     }},
    {"operator",
     [](const PeakAllocation& a, const ModuleTableOptions&) { return a.operator_name; }},
    {"direction",
     [](const PeakAllocation& a, const ModuleTableOptions&) {
       return a.direction ? estimator::to_string(*a.direction) : "";
     }},
    {"phase", [](const PeakAllocation& a, const ModuleTableOptions&) { return a.phase; }},
    {"micro-batch",
     [](const PeakAllocation& a, const ModuleTableOptions&) {
       return a.micro_batch ? std::to_string(*a.micro_batch) : "none";
     }},
    {"tensor",
     [](const PeakAllocation& a, const ModuleTableOptions& options) {
       return fmt::format("{}  {}", path_pattern(a.module, options), shape_text(a));
     }},
};

const Grouping& grouping(const std::string& name) {
  for (const Grouping& known : kGroupings) {
    if (known.name == name) return known;
  }
  throw estimator::UserError({.what = "allocations cannot be grouped by this",
                              .where = fmt::format("--by {}", name),
                              .help = estimator::suggestion(name, names_of_rows(kGroupings))});
}

/// Largest first.
std::vector<MemoryGroup> groups_of(const std::vector<PeakAllocation>& allocations,
                                   const Grouping& by,
                                   const ModuleTableOptions& options) {
  std::map<std::string, MemoryGroup> by_name;
  for (const PeakAllocation& allocation : allocations) {
    MemoryGroup& group = by_name[by.key(allocation, options)];
    group.bytes += allocation.bytes;
    group.requested_bytes += allocation.requested_bytes;
    ++group.allocations;
  }
  std::vector<MemoryGroup> groups;
  for (auto& [name, group] : by_name) {
    group.name = name.empty() ? "(none)" : name;
    groups.push_back(std::move(group));
  }
  std::stable_sort(
      groups.begin(), groups.end(), [](const MemoryGroup& left, const MemoryGroup& right) {
        return left.bytes > right.bytes;
      });
  return groups;
}

TitledTable group_table(const std::vector<MemoryGroup>& groups,
                        const std::string& title,
                        int64_t total_bytes,
                        int64_t top) {
  Table table({{title, Align::kLeft}, {"MiB"}, {"share"}, {"asked for"}, {"allocations"}});
  const auto shown = std::min<std::size_t>(groups.size(), static_cast<std::size_t>(top));
  for (std::size_t i = 0; i < shown; ++i) {
    const MemoryGroup& group = groups[i];
    table.add_row(
        {group.name,
         estimator::format_mib(group.bytes),
         fmt::format("{:.1f} %",
                     100.0 * static_cast<double>(group.bytes) / static_cast<double>(total_bytes)),
         estimator::format_mib(group.requested_bytes),
         estimator::with_commas(group.allocations)});
  }
  TitledTable titled{.title = "", .table = std::move(table), .notes = {}};
  if (shown < groups.size()) {
    titled.notes.push_back(
        fmt::format("and {} more (--top {})", groups.size() - shown, groups.size()));
  }
  return titled;
}

/// A program's snapshot has no layout, since nobody knows it.
std::string place_text(const estimator::PeakSnapshotHeader& header) {
  const estimator::LayoutRecord& layout = header.layout;
  double ranks = 1;  // as whole numbers of a foreign file they could overflow
  for (const int64_t size : {layout.tensor, layout.context, layout.pipeline, layout.data}) {
    ranks *= static_cast<double>(size);
  }
  if (ranks != static_cast<double>(header.world_size)) {
    return fmt::format("rank {} of {}", header.rank, header.world_size);
  }
  return fmt::format("rank {} of {}, tensor {} x pipeline {} x data {}",
                     rank_text(header.rank, header.coordinate),
                     header.world_size,
                     layout.tensor,
                     layout.pipeline,
                     layout.data);
}

std::string snapshot_line(const PeakSnapshot& snapshot) {
  const estimator::PeakSnapshotHeader& header = snapshot.header;
  return fmt::format("{}: {}; device {} {}; {} {}",
                     header.plan.empty() ? "peak snapshot" : header.plan,
                     place_text(header),
                     estimator::to_string(header.device.kind),
                     header.device.name,
                     header.tool.name,
                     header.tool.version);
}

std::string notes_text(const TitledTable& table) {
  std::string text;
  for (const std::string& note : table.notes) text += note + "\n";
  return text;
}

ExitCode run_memory(const MemoryOptions& options) {
  const Grouping& by = grouping(options.by);
  const ModuleTableOptions modules = module_table_options(options.drill_down, options.depth);
  const TableFormat format = options.format.format();
  options.html.check();
  const int64_t top = parse_positive_number(options.top, "--top");
  const PeakSnapshot snapshot =
      estimator::read_peak_snapshot(estimator::read_file(options.path), options.path);
  const std::vector<MemoryGroup> groups = groups_of(snapshot.allocations, by, modules);
  const TitledTable table =
      group_table(groups, options.by, snapshot.header.peak.allocated_bytes, top);
  if (options.html.is_given()) {
    options.html.write(peak_page(snapshot, snapshot_line(snapshot), table));
  }
  if (format == TableFormat::kJson) {
    write_to_standard_output(estimator::document_text(
        MemoryGroups{.by = options.by, .header = snapshot.header, .groups = groups}));
  } else if (format == TableFormat::kCsv) {
    write_to_standard_output(table.table.csv());
  } else if (format == TableFormat::kMarkdown) {
    write_to_standard_output(table.table.markdown());
  } else {
    write_to_standard_output(snapshot_line(snapshot) + "\n" + peak_text(snapshot.header.peak) +
                             "\n" + table.table.text() + notes_text(table));
  }
  return ExitCode::kDone;
}

}  // namespace

Command add_memory_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("memory", "what fills a peak, from a peak snapshot");
  const auto options = std::make_shared<MemoryOptions>();
  app->add_option("FILE", options->path, "peak snapshot that `run --peak-snapshot` wrote")
      ->required();
  CLI::Option* by = app->add_option(
      "--by", options->by, "category, module, operator, tensor, direction, phase or micro-batch");
  offer(by->type_name("WHAT"), names_of_rows(kGroupings));
  app->add_option("--depth", options->depth, "levels of modules")->type_name("N");
  app->add_flag("--drill-down", options->drill_down, "each layer by itself, not `layers.*`");
  app->add_option("--top", options->top, "rows to print (default 20)")->type_name("N");
  options->html.add_to(*app, "write the peak as one HTML file: treemap and tree");
  options->format.add_to(*app);
  return {app, [options](const Environment&) { return run_memory(*options); }};
}

}  // namespace sim
