// The flag --format of commands whose answer is a table.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <string>

#include "estimator/base/enum_names.h"

namespace sim {

enum class TableFormat { kText, kMarkdown, kCsv, kJson };
constexpr std::array<estimator::EnumName<TableFormat>, 4> enum_names(TableFormat) {
  return {{{TableFormat::kText, "table"},
           {TableFormat::kMarkdown, "md"},
           {TableFormat::kCsv, "csv"},
           {TableFormat::kJson, "json"}}};
}

class TableFormatFlag {
 public:
  /// Adds --format, and --json for --format json.
  void add_to(CLI::App& app);

  /// Throws UserError for an unknown format. Call it before a long computation.
  TableFormat format() const;

 private:
  std::string name_ = "table";
  bool json_ = false;
};

}  // namespace sim
