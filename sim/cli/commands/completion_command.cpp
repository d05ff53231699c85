#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "estimator/base/text.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/described_commands.h"
#include "sim/cli/commands/named_choice.h"
#include "sim/cli/process/output.h"

namespace sim {
namespace {

using estimator::ExitCode;
using Commands = std::vector<DescribedCommand>;

/// `text` with a backslash before each of `characters`.
std::string escaped(const std::string& text, const std::string& characters) {
  std::string result;
  for (const char character : text) {
    if (characters.find(character) != std::string::npos) result += '\\';
    result += character;
  }
  return result;
}

std::vector<std::string> names_of(const Commands& commands) {
  std::vector<std::string> names;
  for (const DescribedCommand& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> names_of(const std::vector<DescribedFlag>& flags) {
  std::vector<std::string> names;
  for (const DescribedFlag& flag : flags)
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
}

std::string bash_completion(const Commands& commands) {
  std::string cases;
  for (const DescribedCommand& command : commands) {
    cases += fmt::format(
        "    {}) flags='{}' ;;\n", command.name, fmt::join(names_of(command.flags), " "));
  }
  return fmt::format(R"(# bash completion for onerank
_onerank() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} flags=
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- "$word")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=()
  [[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
}}
complete -o bashdefault -o default -F _onerank onerank
)",
                     fmt::join(names_of(commands), " "),
                     cases);
}

std::string zsh_completion(const Commands& commands) {
  std::string names;
  std::string cases;
  for (const DescribedCommand& command : commands) {
    names += fmt::format(
        "    {}\n", estimator::in_single_quotes(command.name + ":" + escaped(command.help, ":")));
    cases += fmt::format("    {})\n      _arguments '*:file:_files'", command.name);
    for (const DescribedFlag& flag : command.flags) {
      const std::string value =
          flag.value.empty() ? "" : fmt::format(":{}:_files", escaped(flag.value, ":"));
      for (const std::string& name : flag.names) {
        cases +=
            " \\\n        " + estimator::in_single_quotes(fmt::format("{}{}[{}]{}",
                                                                      name,
                                                                      flag.value.empty() ? "" : "=",
                                                                      escaped(flag.help, "[]\\"),
                                                                      value));
      }
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef onerank
_onerank() {{
  local -a subcommands=(
{}  )
  if ((CURRENT == 2)); then
    _describe subcommand subcommands
    return
  fi
  local subcommand=$words[2]
  shift words
  ((CURRENT--))
  case $subcommand in
{}  esac
}}
if [[ $funcstack[1] = _onerank ]]; then _onerank "$@"; else compdef _onerank onerank; fi
)",
                     names,
                     cases);
}

std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "\\'") + "'"; }

std::string fish_completion(const Commands& commands) {
  std::string lines = "# fish completion for onerank\n";
  for (const DescribedCommand& command : commands) {
    lines += fmt::format("complete -c onerank -n __fish_use_subcommand -f -a {} -d {}\n",
                         command.name,
                         fish_quoted(command.help));
    for (const DescribedFlag& flag : command.flags) {
      for (const std::string& name : flag.names) {
        lines +=
            fmt::format("complete -c onerank -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                        command.name,
                        name.substr(2),
                        flag.value.empty() ? "" : " -r",
                        fish_quoted(flag.help));
      }
    }
  }
  return lines;
}

struct Shell {
  const char* name;
  std::string (*completion)(const Commands&);
};
constexpr Shell kShells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

ExitCode print_completion(const CLI::App& root, const std::string& shell) {
  const Shell& named =
      named_choice(kShells, shell, {"completion", "completion of what?", "unknown shell"});
  write_to_standard_output(named.completion(described_commands(root)));
  return ExitCode::kDone;
}

}  // namespace

Command add_completion_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("completion", "a shell's completion of this command line");
  const auto shell = std::make_shared<std::string>();
  app->add_option("SHELL", *shell, "bash, zsh or fish")->type_name("");
  return {app, [shell, &root](const Environment&) { return print_completion(root, *shell); }};
}

}  // namespace sim
