#include <algorithm>
#include <cctype>

#include "sim/cli/import/shell/shell_interpreter.h"
#include "sim/cli/import/shell/shell_sum.h"

namespace sim {
namespace {

ShellStatus status_of(std::optional<bool> holds) {
  if (!holds) return ShellStatus::kUnknown;
  return *holds ? ShellStatus::kTrue : ShellStatus::kFalse;
}

/// The length of the name of a variable with which the word begins.
std::size_t variable_length(std::string_view word) {
  const auto end = std::find_if_not(word.begin(), word.end(), is_shell_name_letter);
  const auto length = static_cast<std::size_t>(end - word.begin());
  return length > 0 && std::isdigit(static_cast<unsigned char>(word[0])) != 0 ? 0 : length;
}
bool is_name(std::string_view word) {
  return !word.empty() && variable_length(word) == word.size();
}

/// The length of "NAME" in "NAME=value" or "NAME+=value"; 0 for other words.
std::size_t assigned_name(std::string_view word) {
  const std::size_t length = variable_length(word);
  if (length == 0) return 0;
  const std::string_view rest = word.substr(length);
  return rest.starts_with('=') || rest.starts_with("+=") ? length : 0;
}

}  // namespace

ShellStatus ShellInterpreter::run_simple(const ShellTokens& tokens,
                                         std::size_t& at,
                                         ShellMode mode) {
  const std::size_t begin = at;
  while (at < tokens.size() && !separates(tokens[at])) ++at;
  if (at < tokens.size() && tokens[at].text == "(" && at == begin) ++at;
  const std::size_t end = at;
  // The here document of a command stands behind the end of its line.
  if (at + 1 < tokens.size() && at_operator(tokens, at, "\n") &&
      tokens[at + 1].kind == ShellToken::Kind::kHeredoc) {
    if (runs(mode)) run_heredoc(tokens, begin, end);
  }
  if (mode == ShellMode::kSkip || end == begin ||
      tokens[begin].kind == ShellToken::Kind::kHeredoc) {
    return ShellStatus::kUnknown;
  }
  return execute(ShellTokens(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                             tokens.begin() + static_cast<std::ptrdiff_t>(end)),
                 mode);
}

void ShellInterpreter::run_heredoc(const ShellTokens& tokens, std::size_t begin, std::size_t end) {
  const ShellToken& heredoc = tokens[end + 1];
  for (std::size_t i = begin; i < end; ++i) {
    const std::string& name = tokens[i].text;
    if (name == "sbatch" || name == "bash" || name == "sh") {
      return run_text(heredoc.text, heredoc.line);
    }
  }
}

ShellStatus ShellInterpreter::execute(const ShellTokens& tokens, ShellMode mode) {
  if (tokens[0].kind == ShellToken::Kind::kTest) {
    return status_of(double_bracket_holds(tokens[0].text, test_subject()));
  }
  if (tokens[0].kind == ShellToken::Kind::kSum)
    return run_sum(tokens[0].text, tokens[0].line, mode);
  std::size_t at = 0;
  while (at < tokens.size() && assign(tokens[at], mode)) ++at;
  if (at == tokens.size()) return ShellStatus::kTrue;
  const std::string& name = tokens[at].text;
  if (name == "[" || name == "test") return test(tokens, at + 1);
  if (name == "true" || name == ":") return ShellStatus::kTrue;
  if (name == "false" || name == "getopts") return ShellStatus::kFalse;
  if (name == "let") return run_let(tokens, at + 1, mode);
  static const std::set<std::string_view> kDeclaring = {
      "export", "declare", "local", "readonly", "typeset"};
  if (kDeclaring.contains(name)) return declare(tokens, at, mode);
  std::vector<std::string> words;
  ShellCommand command;
  for (; at < tokens.size(); ++at) {
    if (tokens[at].kind != ShellToken::Kind::kWord) continue;
    const std::vector<std::string> expanded = expansion_.words(tokens[at].text);
    add_words(tokens[at], expanded, command.words);
    words.insert(words.end(), expanded.begin(), expanded.end());
  }
  return words.empty() ? ShellStatus::kTrue : run_program(std::move(command), words, mode);
}

bool ShellInterpreter::assign(const ShellToken& token, ShellMode mode) {
  const std::size_t length = assigned_name(token.text);
  if (length == 0) return false;
  const std::string name = token.text.substr(0, length);
  const bool adds = token.text[length] == '+';
  const std::string_view value = std::string_view(token.text).substr(length + (adds ? 2 : 1));
  if (runs(mode)) {
    set_variable(name, assigned_items(token, name, adds, value), token.line);
  } else {
    state_.may_set(name, token.items.empty() ? value : token.items.front().text);
  }
  return true;
}

std::vector<std::string> ShellInterpreter::assigned_items(const ShellToken& token,
                                                          const std::string& name,
                                                          bool adds,
                                                          std::string_view value) {
  std::vector<std::string> old;
  if (adds) old = state_.variables()[name];
  if (token.kind != ShellToken::Kind::kArray) {
    std::string text = expansion_.word(value);
    return {adds && !old.empty() ? old.front() + text : std::move(text)};
  }
  for (const ShellToken& item : token.items) {
    for (std::string& word : expansion_.words(item.text)) old.push_back(std::move(word));
  }
  return old;
}

ShellStatus ShellInterpreter::declare(const ShellTokens& tokens, std::size_t at, ShellMode mode) {
  const std::string& name = tokens[at].text;
  const bool is_local = state_.is_in_call() && name != "export" && name != "readonly";
  for (++at; at < tokens.size(); ++at) {
    const std::size_t length = variable_length(tokens[at].text);
    const std::string variable = tokens[at].text.substr(0, length);
    const bool is_bare = is_local && length > 0 && length == tokens[at].text.size();
    if (is_local && length > 0) {
      expansion_.count(state_.bytes(variable));
      state_.make_local(variable);
    }
    if (is_bare && runs(mode)) state_.unset(variable);
    assign(tokens[at], mode);
  }
  return ShellStatus::kTrue;
}

ShellStatus ShellInterpreter::run_sum(std::string_view raw, int line, ShellMode mode) {
  bool has_unset = false;
  const auto value = [&](const std::string& name) -> std::optional<int64_t> {
    const bool is_set = state_.variables().contains(name);
    has_unset = has_unset || !is_set;
    return is_set ? expansion_.number(name) : 0;
  };
  const auto assign = [&](const std::string& name, std::optional<int64_t> result) {
    if (!runs(mode)) return state_.may_set(name);
    if (!result || has_unset) return state_.set_undecided(name);
    set_variable(name, {std::to_string(*result)}, line);
  };
  const auto result = shell_sum(expansion_.sum_text(raw), {.value = value, .assign = assign});
  return status_of(result ? std::optional(*result != 0) : std::nullopt);
}

ShellStatus ShellInterpreter::run_let(const ShellTokens& tokens, std::size_t at, ShellMode mode) {
  ShellStatus status = ShellStatus::kUnknown;
  for (; at < tokens.size(); ++at) {
    status = run_sum(expansion_.word(tokens[at].text), tokens[at].line, mode);
  }
  return status;
}

TestSubject ShellInterpreter::test_subject() {
  return {expansion_, state_.variables(), find_script_};
}

ShellStatus ShellInterpreter::test(const ShellTokens& tokens, std::size_t at) {
  std::vector<std::string> words;
  for (; at < tokens.size(); ++at) {
    if (tokens[at].kind == ShellToken::Kind::kWord) words.push_back(tokens[at].text);
  }
  if (!words.empty() && words.back() == "]") words.pop_back();
  return status_of(bracket_holds(words, test_subject()));
}

ShellStatus ShellInterpreter::run_program(ShellCommand command,
                                          const std::vector<std::string>& words,
                                          ShellMode mode) {
  const std::string& name = command.words.front().text;
  if (name == "exit" || name == "return") {
    stopped_ = mode == ShellMode::kRun;
    return ShellStatus::kStarted;
  }
  if (name == "set" || name == "shift") return change_arguments(words, mode);
  if (name == "unset" || name == "read") return change_variables(words, mode);
  if (name == "eval") {
    std::string text;
    for (std::size_t i = 1; i < command.words.size(); ++i) text += command.words[i].text + " ";
    run_text(text, command.words.front().line, mode);
    return ShellStatus::kStarted;
  }
  if (name == "source" || name == ".") {
    if (command.words.size() > 1) run_file(command.words[1], mode);
    return ShellStatus::kStarted;
  }
  if (const auto function = functions_.find(name); function != functions_.end()) {
    const std::shared_ptr<const ShellTokens> body =
        function->second;  // the call may define it anew
    return call_function(*body, {words.begin() + 1, words.end()}, mode);
  }
  if (!runs(mode)) return ShellStatus::kStarted;
  if (!runs_another_script(command)) script_.commands.push_back(std::move(command));
  return ShellStatus::kStarted;
}

ShellStatus ShellInterpreter::change_arguments(const std::vector<std::string>& words,
                                               ShellMode mode) {
  if (!runs(mode)) return ShellStatus::kTrue;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (words[0] == "set" && dashes != words.end()) {
    expansion_.count(state_.bytes("@"));
    state_.set_arguments({dashes + 1, words.end()});
  }
  if (words[0] == "shift") {
    expansion_.count(state_.bytes("@"));
    const auto count = words.size() > 1 ? shell_number(words[1]) : std::optional<int64_t>(1);
    state_.shift(static_cast<std::size_t>(std::clamp<int64_t>(count.value_or(0), 0, 1 << 20)));
  }
  return ShellStatus::kTrue;
}

ShellStatus ShellInterpreter::change_variables(const std::vector<std::string>& words,
                                               ShellMode mode) {
  for (const std::string& word : words) {
    if (&word == &words.front() || !is_name(word)) continue;
    if (!runs(mode)) {
      state_.may_set(word);
    } else {
      words.front() == "unset" ? state_.unset(word) : state_.set_undecided(word);
    }
  }
  return words.front() == "unset" ? ShellStatus::kTrue : ShellStatus::kUnknown;
}

bool ShellInterpreter::runs_another_script(const ShellCommand& command) {
  static const std::set<std::string_view> kStarters = {"bash", "sh", "sbatch", "srun"};
  bool by_shell = false;
  bool by_text = false;
  for (const ShellWord& word : command.words) {
    if (by_text && word.text.find(' ') != std::string::npos) {
      script_.commands.push_back(command);  // its launcher says something too
      script_.commands.back().words.pop_back();
      run_text(word.text, word.line);
      return true;
    }
    if (word.text == "-c" || word.text == "-lc") by_text = by_shell;
    const bool is_script = by_shell && word.text.ends_with(".sh");
    if (is_script && run_file(word)) {
      script_.commands.push_back(command);
      return true;
    }
    by_shell = by_shell || kStarters.contains(word.text);
  }
  return false;
}

bool ShellInterpreter::run_file(const ShellWord& word, ShellMode mode) {
  const auto text = find_script_ ? find_script_(known_part(marked_of(word))) : std::nullopt;
  if (!text) return false;
  run_text(*text, 1, mode);
  return true;
}

std::string ShellInterpreter::marked_of(const ShellWord& word) {
  std::string text = word.text;
  for (std::size_t at = 0; word.is_unknown && (at = text.find_first_of("$`", at)) != text.npos;) {
    std::size_t end = end_of_shell_part(text, at);
    while (end == at + 1 && end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
      text.erase(end, 1);
    }
    text.erase(at, end - at);
  }
  return text;
}

void ShellInterpreter::add_words(const ShellToken& token,
                                 const std::vector<std::string>& texts,
                                 std::vector<ShellWord>& words) {
  for (const std::string& text : texts) words.push_back(marked_word(text, token.line));
}
void ShellInterpreter::add_words(const ShellToken& token,
                                 const std::string& text,
                                 std::vector<ShellWord>& words) {
  add_words(token, divided_outside_marks(text), words);
}

}  // namespace sim
