#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <sstream>

#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/described_commands.h"
#include "sim/cli/process/output.h"

namespace sim {
namespace {

using estimator::ExitCode;

/// As roff prints it: no hyphens made of minuses, no escapes, no requests.
std::string roff(const std::string& text) {
  std::string result;
  bool is_line_start = true;
  for (const char character : text) {
    if (is_line_start && (character == '.' || character == '\'')) result += "\\&";
    if (character == '\\') {
      result += "\\e";
    } else if (character == '-') {
      result += "\\-";
    } else {
      result += character;
    }
    is_line_start = character == '\n';
  }
  return result;
}

/// Lines as they stand in `text`.
std::string as_it_stands(const std::string& text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

std::string flag_text(const DescribedFlag& flag) {
  const std::string value = flag.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(flag.value));
  std::vector<std::string> names;
  for (const std::string& name : flag.names) names.push_back(fmt::format("\\fB{}\\fR", roff(name)));
  return fmt::format(".TP\n{}{}\n{}\n", fmt::join(names, ", "), value, roff(flag.help));
}

std::string manual_page(const CLI::App& root) {
  std::string text = fmt::format(R"(.TH ONERANK 1 "" "onerank {}"
.SH NAME
onerank \- run one rank, know the cluster
.SH SYNOPSIS
.B onerank
\fISUBCOMMAND\fR [\fIOPTION\fR...] [\fIPLAN\fR]
.SH DESCRIPTION
)",
                                 ONERANK_VERSION);
  text += as_it_stands(root.get_description()) + ".SH SUBCOMMANDS\n";
  for (const DescribedCommand& command : described_commands(root)) {
    text += fmt::format(".SS onerank {}\n{}\n", roff(command.name), roff(command.help));
    for (const DescribedFlag& flag : command.flags) text += flag_text(flag);
  }
  return text + ".SH EXIT STATUS\n" + as_it_stands(root.get_footer());
}

}  // namespace

Command add_man_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("man", "the manual page, for `man -l -`");
  return {app, [&root](const Environment&) {
            write_to_standard_output(manual_page(root));
            return ExitCode::kDone;
          }};
}

}  // namespace sim
