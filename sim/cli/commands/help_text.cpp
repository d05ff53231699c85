#include "sim/cli/commands/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <stdexcept>

#include "sim/cli/commands/command_guides.h"
#include "sim/cli/commands/described_commands.h"
#include "sim/cli/report/wrapped_text.h"

namespace sim {
namespace {

constexpr std::size_t kNameColumns = 30;

/// "  --tp N          tensor parallel size", where a long name has a line of its own.
std::string help_entry(const std::string& name, const std::string& help, std::size_t columns) {
  const std::string begin = "  " + name;
  if (begin.size() + 2 <= kNameColumns) {
    return hanging_text(fmt::format("{:<{}}", begin, kNameColumns), help, columns);
  }
  return begin + "\n" + hanging_text(std::string(kNameColumns, ' '), help, columns);
}

/// "-o, --output": what is one letter, and the first name that is not.
std::vector<std::string> shown_names(const DescribedFlag& flag) {
  std::vector<std::string> shown;
  for (const std::string& name : flag.names) {
    shown.push_back(name);
    if (name.starts_with("--")) break;
  }
  return shown;
}

std::string help_entry(const DescribedFlag& flag, bool with_aliases, std::size_t columns) {
  const std::vector<std::string> shown = shown_names(flag);
  const std::string value = flag.value.empty() ? "" : " " + flag.value;
  std::string help = flag.help;
  if (with_aliases && shown.size() < flag.names.size()) {
    help += fmt::format("; also {}",
                        fmt::join(flag.names.begin() + static_cast<std::ptrdiff_t>(shown.size()),
                                  flag.names.end(),
                                  ", "));
  }
  return help_entry(fmt::format("{}{}", fmt::join(shown, ", "), value), help, columns);
}

const DescribedFlag& guided_flag(const DescribedCommand& command, const std::string& name) {
  for (const DescribedFlag& flag : command.flags) {
    if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return flag;
  }
  throw std::logic_error("a guide names no flag of its subcommand");
}

std::string help_begin(const DescribedCommand& command, std::size_t columns) {
  std::string usage = fmt::format("Usage: onerank {} [OPTION...]", command.name);
  for (const DescribedFlag& argument : command.arguments) usage += " " + argument.names.front();
  std::string text = hanging_text("", command.help, columns) + "\n" + usage + "\n";
  if (!command.arguments.empty()) text += "\n";
  for (const DescribedFlag& argument : command.arguments) {
    text += help_entry(argument.names.front(), argument.help, columns);
  }
  return text;
}

std::string flags_by_heading(const DescribedCommand& command, std::size_t columns) {
  std::string text;
  std::string heading;
  for (const DescribedFlag& flag : command.flags) {
    if (flag.group != heading) text += fmt::format("\n{}:\n", flag.group);
    heading = flag.group;
    text += help_entry(flag, true, columns);
  }
  return text;
}

std::string examples_of(const CommandGuide& guide) {
  return fmt::format("\nExamples:\n  {}\n", fmt::join(guide.examples, "\n  "));
}

}  // namespace

std::string root_help(const CLI::App& root, std::size_t columns) {
  std::string text = root.get_description() + "\nUsage: onerank SUBCOMMAND [OPTION...]\n";
  text += "\nSubcommands:\n";
  for (const DescribedCommand& command : described_commands(root)) {
    text += hanging_text(fmt::format("  {:<12}", command.name), command.help, columns);
  }
  text += "\n";
  for (const std::string& paragraph : {root.get_footer(),
                                       std::string("`onerank SUBCOMMAND --help` shows what people "
                                                   "need first, `--help-all` all options.")}) {
    text += hanging_text("", paragraph, columns);
  }
  return text;
}

std::string short_help(const CLI::App& app, std::size_t columns) {
  const DescribedCommand command = described_command(app);
  const CommandGuide& guide = guide_of(command.name);
  if (guide.first_flags.empty()) return full_help(app, columns);
  std::string text = help_begin(command, columns) + "\nWhat people need first:\n";
  for (const std::string& name : guide.first_flags) {
    text += help_entry(guided_flag(command, name), false, columns);
  }
  return text + examples_of(guide) +
         fmt::format("\n`onerank {} --help-all` lists all {} options.\n",
                     command.name,
                     command.flags.size());
}

std::string full_help(const CLI::App& app, std::size_t columns) {
  const DescribedCommand command = described_command(app);
  return help_begin(command, columns) + flags_by_heading(command, columns) +
         examples_of(guide_of(command.name));
}

}  // namespace sim
