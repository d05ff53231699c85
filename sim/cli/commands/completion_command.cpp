#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

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

std::string with_blanks(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string in_one_text(const std::vector<std::string>& words) {
  return estimator::in_single_quotes(with_blanks(words));
}

/// What an argument of the command may be; empty: a file, or free.
std::vector<std::string> words_of_arguments(const DescribedCommand& command) {
  std::vector<std::string> words;
  for (const DescribedFlag& argument : command.arguments)
    words.insert(words.end(), argument.words.begin(), argument.words.end());
  return words;
}

/// Sets `flags` and `words` for a command; `words` by the flag before the cursor.
std::string bash_case(const DescribedCommand& command) {
  const std::vector<std::string> arguments = words_of_arguments(command);
  std::string text = fmt::format("    {})\n      flags={} words={}\n      case $before in\n",
                                 command.name,
                                 in_one_text(names_of(command.flags)),
                                 in_one_text(arguments));
  for (const DescribedFlag& flag : command.flags) {
    if (flag.value.empty() || (flag.words.empty() && arguments.empty())) continue;
    text += fmt::format(
        "        {}) words={} ;;\n", fmt::join(flag.names, "|"), in_one_text(flag.words));
  }
  return text + "      esac ;;\n";
}

std::string bash_completion(const Commands& commands) {
  std::string cases;
  for (const DescribedCommand& command : commands) cases += bash_case(command);
  return fmt::format(R"(# bash completion for onerank
_onerank() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} flags= words=
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- "$word")
    return
  fi
  local before=${{COMP_WORDS[COMP_CWORD - 1]}}
  if [[ $word = '=' ]]; then
    word=
  elif [[ $before = '=' ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=()
  [[ $word != -* ]] || words=$flags
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o bashdefault -o default -F _onerank onerank
)",
                     with_blanks(names_of(commands)),
                     cases);
}

/// ":NAME:(bf16 fp16)", or ":FILE:_files" where nothing is offered.
std::string zsh_action(const std::string& what, const std::vector<std::string>& words) {
  if (words.empty()) return fmt::format(":{}:_files", escaped(what, ":"));
  return fmt::format(":{}:({})", escaped(what, ":"), escaped(with_blanks(words), ":()\\"));
}

std::string zsh_case(const DescribedCommand& command) {
  const std::vector<std::string> arguments = words_of_arguments(command);
  std::string text = fmt::format(
      "    {})\n      _arguments {}",
      command.name,
      estimator::in_single_quotes((arguments.empty() ? "*" : "1") +
                                  zsh_action(arguments.empty() ? "file" : "what", arguments)));
  for (const DescribedFlag& flag : command.flags) {
    const std::string value = flag.value.empty() ? "" : zsh_action(flag.value, flag.words);
    for (const std::string& name : flag.names) {
      text += " \\\n        " +
              estimator::in_single_quotes(fmt::format(
                  "{}{}[{}]{}", name, value.empty() ? "" : "=", escaped(flag.help, "[]\\"), value));
    }
  }
  return text + " ;;\n";
}

std::string zsh_completion(const Commands& commands) {
  std::string names;
  std::string cases;
  for (const DescribedCommand& command : commands) {
    names += fmt::format(
        "    {}\n", estimator::in_single_quotes(command.name + ":" + escaped(command.help, ":")));
    cases += zsh_case(command);
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

/// " -x -a 'bf16 fp16'", or " -r" where the value is a file, or free.
std::string fish_value(const DescribedFlag& flag) {
  if (flag.value.empty()) return "";
  if (flag.words.empty()) return " -r";
  return " -x -a " + fish_quoted(with_blanks(flag.words));
}

std::string fish_lines(const DescribedCommand& command) {
  const std::string here =
      fmt::format("complete -c onerank -n '__fish_seen_subcommand_from {}'", command.name);
  std::string lines = fmt::format("complete -c onerank -n __fish_use_subcommand -f -a {} -d {}\n",
                                  command.name,
                                  fish_quoted(command.help));
  const std::vector<std::string> arguments = words_of_arguments(command);
  if (!arguments.empty()) {
    lines += fmt::format("{} -f -a {}\n", here, fish_quoted(with_blanks(arguments)));
  }
  for (const DescribedFlag& flag : command.flags) {
    for (const std::string& name : flag.names) {
      lines += fmt::format(
          "{} -l {}{} -d {}\n", here, name.substr(2), fish_value(flag), fish_quoted(flag.help));
    }
  }
  return lines;
}

std::string fish_completion(const Commands& commands) {
  std::string lines = "# fish completion for onerank\n";
  for (const DescribedCommand& command : commands) lines += fish_lines(command);
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
  offer(app->add_option("SHELL", *shell, "bash, zsh or fish")->type_name(""),
        names_of_rows(kShells));
  return {app, [shell, &root](const Environment&) { return print_completion(root, *shell); }};
}

}  // namespace sim
