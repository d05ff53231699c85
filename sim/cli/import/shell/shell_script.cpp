#include "sim/cli/import/shell/shell_script.h"

#include "sim/cli/import/shell/shell_interpreter.h"

namespace sim {

void ShellInterpreter::start(const ShellStart& start) {
  for (const auto& [name, value] : start.environment) set_variable(name, {value}, 0);
  if (start.arguments) state_.set_arguments(*start.arguments);
}

void ShellInterpreter::set_variable(const std::string& name,
                                    std::vector<std::string> items,
                                    int line) {
  state_.set(name, std::move(items), line);
}

ShellScript ShellInterpreter::result() && {
  for (const auto& [name, items] : state_.variables()) {
    std::vector<ShellWord> words;
    for (const std::string& item : items) {
      add_words(ShellToken{.text = "$", .line = state_.line(name), .items = {}}, item, words);
    }
    script_.variables.emplace(name, std::move(words));
  }
  return std::move(script_);
}

ShellScript read_shell_script(std::string_view text,
                              const std::string& origin,
                              const ScriptFinder& find_script,
                              const ShellStart& start) {
  ShellInterpreter interpreter(origin, find_script);
  interpreter.start(start);
  interpreter.run_text(text, 1);
  return std::move(interpreter).result();
}

}  // namespace sim
