#include "sim/cli/input/table_format_flag.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "estimator/base/errors.h"
#include "sim/cli/input/offered_words.h"

namespace sim {

void TableFormatFlag::add_to(CLI::App& app) {
  CLI::Option* format = app.add_option("--format", name_, "table, md (Markdown), csv or json");
  offer(format->type_name("NAME")->group("Output"), estimator::names_of<TableFormat>());
  app.add_flag("--json", json_, "the same as --format json")->excludes(format)->group("Output");
}

TableFormat TableFormatFlag::format() const {
  if (json_) return TableFormat::kJson;
  if (const auto format = estimator::value_named<TableFormat>(name_)) return *format;
  throw estimator::UserError({.what = "unknown format",
                              .where = fmt::format("--format = \"{}\"", name_),
                              .help = "use table, md, csv or json"});
}

}  // namespace sim
