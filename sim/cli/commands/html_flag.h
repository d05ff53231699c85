// The flag --html of commands whose report is also a page.
#pragma once

#include <string>

#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/page/page.h"

namespace sim {

class HtmlFlag {
 public:
  void add_to(CLI::App& app,
              const std::string& help = "write the report as one HTML file: tables and pictures");

  bool is_given() const { return !file_.empty(); }

  /// Throws UserError if the file cannot be written. Call it before a long computation.
  void check() const;

  void write(const Page& page) const;

 private:
  std::string file_;
};

}  // namespace sim
