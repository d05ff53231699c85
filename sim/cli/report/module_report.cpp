#include "sim/cli/report/module_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "estimator/base/module_path.h"
#include "estimator/base/units.h"
#include "sim/cli/report/table.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::format_mib;
using estimator::ModuleRecord;

constexpr const char* kFollowed = "simulated: every allocation is followed until it is freed";

void add(const ModuleRecord& module, ModuleGroup& group) {
  ++group.count;
  ModuleRecord& sum = group.record;
  sum.parameter_bytes += module.parameter_bytes;
  sum.activation_bytes_at_peak += module.activation_bytes_at_peak;
  sum.forward_peak_bytes = std::max(sum.forward_peak_bytes, module.forward_peak_bytes);
  sum.backward_peak_bytes = std::max(sum.backward_peak_bytes, module.backward_peak_bytes);
}

}  // namespace

ModuleTableOptions module_table_options(bool drill_down, const std::string& depth) {
  ModuleTableOptions options{.each = drill_down, .depth = std::nullopt};
  if (!depth.empty()) options.depth = parse_positive_number(depth, "--depth");
  return options;
}

std::string path_pattern(const std::string& path, const ModuleTableOptions& options) {
  std::vector<std::string> elements = estimator::path_elements(path);
  if (options.depth) elements.resize(std::min<std::size_t>(elements.size(), *options.depth));
  for (std::string& element : elements) {
    const std::size_t dot = element.rfind('.');
    if (!options.each && dot != element.npos) element = element.substr(0, dot) + ".*";
  }
  return fmt::format("{}", fmt::join(elements, "."));
}

std::vector<ModuleGroup> group_modules(const std::vector<ModuleRecord>& modules,
                                       const ModuleTableOptions& options) {
  std::vector<ModuleGroup> groups;
  std::map<std::string, std::size_t> index;
  for (const ModuleRecord& module : modules) {
    const auto levels = static_cast<int64_t>(estimator::path_elements(module.path).size());
    if (options.depth && levels > *options.depth) continue;  // its parent holds it
    const std::string pattern = path_pattern(module.path, options);
    const auto [known, is_new] = index.try_emplace(pattern, groups.size());
    if (is_new) groups.push_back({.record = {.path = pattern}});
    add(module, groups[known->second]);
  }
  return groups;
}

TitledTable module_table(const std::vector<ModuleRecord>& modules,
                         const ModuleTableOptions& options) {
  Table table({{"module (MiB)", Align::kLeft},
               {"modules", Align::kRight, "how many are one row"},
               {"parameters", Align::kRight, kFollowed},
               {"activations at the peak", Align::kRight, kFollowed},
               {"peak in forward", Align::kRight, kFollowed},
               {"peak in backward", Align::kRight, kFollowed}});
  for (const ModuleGroup& group : group_modules(modules, options)) {
    const ModuleRecord& record = group.record;
    table.add_row({record.path,
                   std::to_string(group.count),
                   format_mib(record.parameter_bytes),
                   format_mib(record.activation_bytes_at_peak),
                   format_mib(record.forward_peak_bytes),
                   format_mib(record.backward_peak_bytes)});
  }
  return {.title = "",
          .table = std::move(table),
          .notes = {"each row includes the modules inside it; peaks are what the whole device had "
                    "allocated while the module ran"}};
}

std::string module_text(const std::vector<ModuleRecord>& modules,
                        const ModuleTableOptions& options) {
  const TitledTable titled = module_table(modules, options);
  return titled.table.text() + titled.notes.front() + "\n";
}

}  // namespace sim
