#include "sim/cli/import/shell_script.h"

#include "sim/cli/import/shell_interpreter.h"

namespace sim {

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
                              const std::map<std::string, std::string>& environment) {
  ShellInterpreter interpreter(origin, find_script);
  for (const auto& [name, value] : environment) interpreter.set_variable(name, {value}, 0);
  interpreter.run_text(text, 1);
  return std::move(interpreter).result();
}

}  // namespace sim
