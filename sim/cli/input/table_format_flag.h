// The flag --format of commands whose answer is a table.
#pragma once

#include <string>

#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/values/table_format.h"

namespace sim {

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
