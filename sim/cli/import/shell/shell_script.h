// Reads a shell script for the commands that it would start, without starting any. It follows
// assignments, arrays, ${NAME:-default}, sums, tests, case, for (the first item), functions,
// subshells and scripts that it sources. What only a shell could know ($1, $(command), variables
// that nobody sets, or that are assigned where a test is not decided) stays in the words as it is
// written.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

struct ShellWord {
  std::string text;
  int line = 0;
  bool is_unknown = false;  ///< a part of it is known to the shell alone
  /// All of it is what nobody can decide: a shell may make several words of it, or none.
  bool is_open = false;
  bool holds_arguments = false;  ///< it is open, and one of the values it may have is `--key ...`
};

struct ShellCommand {
  std::vector<ShellWord> words;
};

/// A loop over several values, of which the first round is read.
struct ShellLoop {
  std::string variable;
  std::string first;  ///< its value in this round
  int first_line = 0;
  int last_line = 0;
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::vector<ShellWord> directives;  ///< the words of all lines #SBATCH
  std::vector<ShellLoop> loops;
  std::map<std::string, std::vector<ShellWord>> variables;  ///< as they are at the end
};

/// The text of another script by the path that is written, or nothing.
using ScriptFinder = std::function<std::optional<std::string>(const std::string& path)>;

/// What the text of a script does not have.
struct ScriptInput {
  ScriptFinder find_script;                                ///< scripts that it sources
  std::optional<std::vector<std::string>> arguments = {};  ///< its arguments; nothing: not known
};

/// What a script is started with.
struct ShellStart {
  std::map<std::string, std::string> environment = {};               ///< variables set before
  std::optional<std::vector<std::string>> arguments = std::nullopt;  ///< $1 ...; nothing: not known
};

/// Throws UserError that names `origin` if the script is too large or nested too deeply.
ShellScript read_shell_script(std::string_view text,
                              const std::string& origin,
                              const ScriptFinder& find_script,
                              const ShellStart& start = {});

}  // namespace sim
