#include "sim/cli/import/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>

#include "estimator/base/errors.h"
#include "sim/cli/import/glob.h"
#include "sim/cli/import/shell_expansion.h"
#include "sim/cli/import/shell_tokens.h"

namespace sim {
namespace {

using Kind = ShellToken::Kind;
using Tokens = std::vector<ShellToken>;
using std::string_view;

/// How a command ended, where it can be known.
enum class Status { kUnknown, kTrue, kFalse };

/// The length of "NAME" in "NAME=value" or "NAME+=value"; 0 for other words.
std::size_t assigned_name(string_view word) {
  const auto end = std::find_if_not(word.begin(), word.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  });
  const auto length = static_cast<std::size_t>(end - word.begin());
  if (length == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return 0;
  const string_view rest = word.substr(length);
  return rest.starts_with('=') || rest.starts_with("+=") ? length : 0;
}

/// Long texts are compared as they are: a pattern takes the product of both lengths.
bool is_matched(const std::string& text, const std::string& pattern) {
  constexpr std::size_t kLongestProduct = 1 << 14;
  const bool is_short = text.size() * pattern.size() <= kLongestProduct;
  return is_short ? matches_glob(text, pattern) : text == pattern;
}

class Interpreter {
 public:
  Interpreter(std::string origin, const ScriptFinder& find_script)
      : origin_(std::move(origin)), find_script_(find_script), expansion_(variables_, origin_) {}

  void run_text(string_view text, int line) {
    constexpr int kDeepestScript = 8;
    if (++depth_ > kDeepestScript) {
      --depth_;
      return;
    }
    const Tokens tokens = shell_tokens(text, line, origin_);
    std::size_t at = 0;
    while (at < tokens.size()) {
      run_list(tokens, at, {}, true);
      if (at < tokens.size()) ++at;  // a closing word without its opening one
    }
    --depth_;
  }

  void set_variable(const std::string& name, std::vector<std::string> items, int line) {
    variables_[name] = std::move(items);
    lines_[name] = line;
  }

  ShellScript result() && {
    for (const auto& [name, items] : variables_) {
      std::vector<ShellWord> words;
      for (const std::string& item : items) {
        add_words(ShellToken{.text = "$", .line = lines_[name], .items = {}}, item, words);
      }
      script_.variables.emplace(name, std::move(words));
    }
    return std::move(script_);
  }

 private:
  void count_step() {
    constexpr int kMostSteps = 200'000;
    if (++steps_ <= kMostSteps) return;
    throw estimator::UserError({.what = origin_ + " is too long a script",
                                .where = fmt::format("more than {} commands", kMostSteps),
                                .help = "write its arguments in one command"});
  }

  static bool at_word(const Tokens& tokens, std::size_t at, string_view text) {
    return at < tokens.size() && tokens[at].is(Kind::kWord, text);
  }
  static bool at_operator(const Tokens& tokens, std::size_t at, string_view text) {
    return at < tokens.size() && tokens[at].is(Kind::kOperator, text);
  }
  static bool separates(const ShellToken& token) { return token.kind == Kind::kOperator; }

  /// Runs commands up to one of the words or operators in `ends`, which is not taken. `active` is
  /// false where a shell would not run them.
  Status run_list(const Tokens& tokens,
                  std::size_t& at,
                  const std::set<string_view>& ends,
                  bool active) {
    constexpr int kDeepestList = 64;
    static const std::set<string_view> kClosing = {
        "then", "else", "elif", "fi", "do", "done", "esac", "}", ")", ";;"};
    Status status = Status::kUnknown;
    bool skips_next = false;
    if (++list_depth_ > kDeepestList) {
      throw estimator::UserError({.what = origin_ + " is nested too deeply",
                                  .where = "its commands",
                                  .help = "write its arguments in one command"});
    }
    while (at < tokens.size()) {
      const ShellToken& token = tokens[at];
      const bool closes = (token.kind == Kind::kWord || token.kind == Kind::kOperator) &&
                          kClosing.contains(token.text);
      if (closes && (ends.contains(token.text) || list_depth_ > 1)) break;
      if (separates(token) && token.text != "(") {
        if (token.text == "&&") skips_next = status == Status::kFalse;
        if (token.text == "||") skips_next = status != Status::kFalse;
        if (token.text == ";" || token.text == "\n") skips_next = false;
        ++at;
        continue;
      }
      const Status ended = run_command(tokens, at, active && !skips_next && !stopped_);
      if (!skips_next) status = ended;
    }
    --list_depth_;
    return status;
  }

  void skip_to_end(const Tokens& tokens, std::size_t& at, string_view end) {
    if (at_word(tokens, at, end) || at_operator(tokens, at, end)) ++at;
  }

  Status run_command(const Tokens& tokens, std::size_t& at, bool active) {
    count_step();
    const ShellToken& first = tokens[at];
    if (first.kind == Kind::kDirective) {
      std::vector<ShellWord>& directives = script_.directives;
      if (active) add_words(first, expansion_.word(comment_cut(first.text)), directives);
      ++at;
      return Status::kUnknown;
    }
    if (first.kind == Kind::kOperator && first.text == "(") {
      run_list(tokens, ++at, {")"}, active);
      skip_to_end(tokens, at, ")");
      return Status::kUnknown;
    }
    if (first.kind == Kind::kWord) {
      if (first.text == "{") return run_braces(tokens, at, active);
      if (first.text == "if") return run_if(tokens, at, active);
      if (first.text == "for") return run_for(tokens, at, active);
      if (first.text == "while" || first.text == "until") return run_while(tokens, at);
      if (first.text == "case") return run_case(tokens, at, active);
      if (first.text == "function" || is_function(tokens, at)) return read_function(tokens, at);
      if (first.text == "!") return run_command_after(tokens, at, active);
    }
    return run_simple(tokens, at, active);
  }

  /// Without a comment at the end of the line.
  static string_view comment_cut(string_view text) { return text.substr(0, text.find(" #")); }

  Status run_command_after(const Tokens& tokens, std::size_t& at, bool active) {
    if (++at >= tokens.size()) return Status::kUnknown;
    const Status status = run_simple(tokens, at, active);
    if (status == Status::kUnknown) return status;
    return status == Status::kTrue ? Status::kFalse : Status::kTrue;
  }

  Status run_braces(const Tokens& tokens, std::size_t& at, bool active) {
    const Status status = run_list(tokens, ++at, {"}"}, active);
    skip_to_end(tokens, at, "}");
    return status;
  }

  Status run_if(const Tokens& tokens, std::size_t& at, bool active) {
    bool taken = false;
    while (at_word(tokens, at, "if") || at_word(tokens, at, "elif")) {
      const Status status = run_list(tokens, ++at, {"then"}, active && !taken);
      skip_to_end(tokens, at, "then");
      const bool takes = !taken && status == Status::kTrue;
      run_list(tokens, at, {"elif", "else", "fi"}, active && takes);
      taken = taken || takes;
    }
    if (at_word(tokens, at, "else")) run_list(tokens, ++at, {"fi"}, active && !taken);
    skip_to_end(tokens, at, "fi");
    return Status::kUnknown;
  }

  /// Runs for the first item alone: a script that trains once for each trains with the first first.
  Status run_for(const Tokens& tokens, std::size_t& at, bool active) {
    ++at;
    std::vector<std::string> items;
    std::string name;
    if (at < tokens.size() && tokens[at].kind == Kind::kWord) name = tokens[at++].text;
    if (at_word(tokens, at, "in")) {
      for (++at; at < tokens.size() && !separates(tokens[at]); ++at) {
        for (std::string& word : expansion_.words(tokens[at].text)) items.push_back(word);
      }
    }
    while (at < tokens.size() && !at_word(tokens, at, "do")) ++at;
    skip_to_end(tokens, at, "do");
    const bool runs = active && !items.empty();
    if (runs) set_variable(name, {items.front()}, at < tokens.size() ? tokens[at].line : 0);
    run_list(tokens, at, {"done"}, runs);
    skip_to_end(tokens, at, "done");
    return Status::kUnknown;
  }

  /// Reads arguments or waits for something, as a rule: not run.
  Status run_while(const Tokens& tokens, std::size_t& at) {
    run_list(tokens, ++at, {"do"}, false);
    skip_to_end(tokens, at, "do");
    run_list(tokens, at, {"done"}, false);
    skip_to_end(tokens, at, "done");
    return Status::kUnknown;
  }

  Status run_case(const Tokens& tokens, std::size_t& at, bool active) {
    ++at;
    std::string value;
    if (at < tokens.size()) value = expansion_.known_word(tokens[at++].text);
    while (at < tokens.size() && !at_word(tokens, at, "in")) ++at;
    skip_to_end(tokens, at, "in");
    bool taken = false;
    while (at < tokens.size() && !at_word(tokens, at, "esac")) {
      bool is_it = false;
      while (at < tokens.size() && !at_operator(tokens, at, ")") && !at_word(tokens, at, "esac")) {
        const ShellToken& token = tokens[at++];
        if (token.kind != Kind::kWord) continue;
        is_it = is_it || is_matched(value, expansion_.known_word(token.text));
      }
      if (at_word(tokens, at, "esac")) break;
      skip_to_end(tokens, at, ")");
      run_list(tokens, at, {";;", "esac"}, active && is_it && !taken);
      taken = taken || is_it;
      if (at < tokens.size() && !at_operator(tokens, at, ";;") && !at_word(tokens, at, "esac")) {
        ++at;  // a closing word that closes nothing
      }
      skip_to_end(tokens, at, ";;");
    }
    skip_to_end(tokens, at, "esac");
    return Status::kUnknown;
  }

  static bool is_function(const Tokens& tokens, std::size_t at) {
    return at_operator(tokens, at + 1, "(") && at_operator(tokens, at + 2, ")");
  }

  Status read_function(const Tokens& tokens, std::size_t& at) {
    if (tokens[at].text == "function") ++at;
    if (at >= tokens.size()) return Status::kUnknown;
    const std::string name = tokens[at++].text;
    while (at < tokens.size() && separates(tokens[at])) ++at;
    if (!at_word(tokens, at, "{")) return Status::kUnknown;
    const std::size_t begin = ++at;
    run_list(tokens, at, {"}"}, false);
    functions_[name] =
        std::make_shared<const Tokens>(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                       tokens.begin() + static_cast<std::ptrdiff_t>(at));
    skip_to_end(tokens, at, "}");
    return Status::kUnknown;
  }

  Status call_function(const Tokens& body, const ShellCommand& command) {
    constexpr int kDeepestCall = 8;
    if (++depth_ > kDeepestCall) {
      --depth_;
      return Status::kUnknown;
    }
    for (std::size_t i = 1; i < command.words.size() && i < 10; ++i) {
      variables_[std::to_string(i)] = {command.words[i].text};
    }
    std::size_t at = 0;
    run_list(body, at, {}, true);
    stopped_ = false;  // by its return
    for (char digit = '1'; digit <= '9'; ++digit) variables_.erase(std::string(1, digit));
    --depth_;
    return Status::kUnknown;
  }

  Status run_simple(const Tokens& tokens, std::size_t& at, bool active) {
    const std::size_t begin = at;
    while (at < tokens.size() && !separates(tokens[at])) ++at;
    if (at < tokens.size() && tokens[at].text == "(" && at == begin) ++at;
    const std::size_t end = at;
    // The here document of a command stands behind the end of its line.
    if (at + 1 < tokens.size() && at_operator(tokens, at, "\n") &&
        tokens[at + 1].kind == Kind::kHeredoc) {
      if (active) run_heredoc(tokens, begin, end);
    }
    if (!active || end == begin || tokens[begin].kind == Kind::kHeredoc) return Status::kUnknown;
    return execute(Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                          tokens.begin() + static_cast<std::ptrdiff_t>(end)));
  }

  /// Behind the command from `begin` to `end`, if that is a program that runs it as a script.
  void run_heredoc(const Tokens& tokens, std::size_t begin, std::size_t end) {
    const ShellToken& heredoc = tokens[end + 1];
    for (std::size_t i = begin; i < end; ++i) {
      const std::string& name = tokens[i].text;
      if (name == "sbatch" || name == "bash" || name == "sh") {
        return run_text(heredoc.text, heredoc.line);
      }
    }
  }

  Status execute(const Tokens& tokens) {
    std::size_t at = 0;
    while (at < tokens.size() && assign(tokens[at])) ++at;
    if (at == tokens.size()) return Status::kTrue;
    const std::string& name = tokens[at].text;
    if (name == "[" || name == "[[" || name == "test") return test(tokens, at + 1);
    if (name == "true" || name == ":") return Status::kTrue;
    if (name == "false") return Status::kFalse;
    static const std::set<string_view> kDeclaring = {
        "export", "declare", "local", "readonly", "typeset"};
    if (kDeclaring.contains(name)) {
      for (++at; at < tokens.size(); ++at) assign(tokens[at]);
      return Status::kTrue;
    }
    ShellCommand command;
    for (; at < tokens.size(); ++at) {
      if (tokens[at].kind == Kind::kWord) {
        add_words(tokens[at], expansion_.words(tokens[at].text), command.words);
      }
    }
    return command.words.empty() ? Status::kUnknown : run_program(std::move(command));
  }

  Status run_program(ShellCommand command) {
    const std::string name = command.words.front().text;
    if (name == "exit" || name == "return") {
      stopped_ = true;
      return Status::kUnknown;
    }
    if (name == "unset") {
      for (const ShellWord& word : command.words) variables_.erase(word.text);
      return Status::kTrue;
    }
    if (name == "eval") {
      std::string text;
      for (std::size_t i = 1; i < command.words.size(); ++i) text += command.words[i].text + " ";
      run_text(text, command.words.front().line);
      return Status::kUnknown;
    }
    if (name == "source" || name == ".") {
      if (command.words.size() > 1) run_file(command.words[1]);
      return Status::kUnknown;
    }
    if (const auto function = functions_.find(name); function != functions_.end()) {
      const std::shared_ptr<const Tokens> body = function->second;  // the call may define it anew
      return call_function(*body, command);
    }
    if (!runs_another_script(command)) script_.commands.push_back(std::move(command));
    return Status::kUnknown;
  }

  /// `bash -c "..."`, `sbatch job.sh` and `srun bash job.sh` run the other script.
  bool runs_another_script(const ShellCommand& command) {
    static const std::set<string_view> kStarters = {"bash", "sh", "sbatch", "srun"};
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

  bool run_file(const ShellWord& word) {
    const auto text = find_script_ ? find_script_(known_part(marked_of(word))) : std::nullopt;
    if (!text) return false;
    run_text(*text, 1);
    return true;
  }

  /// Words that are no longer marked keep what the shell alone knows as "$(...)" or "${...}".
  static std::string marked_of(const ShellWord& word) {
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

  bool assign(const ShellToken& token) {
    const std::size_t length = assigned_name(token.text);
    if (length == 0) return false;
    const std::string name = token.text.substr(0, length);
    const bool adds = token.text[length] == '+';
    const string_view value = string_view(token.text).substr(length + (adds ? 2 : 1));
    std::vector<std::string> items;
    if (token.kind == Kind::kArray) {
      for (const ShellToken& item : token.items) {
        for (std::string& word : expansion_.words(item.text)) items.push_back(std::move(word));
      }
      if (adds) items.insert(items.begin(), variables_[name].begin(), variables_[name].end());
    } else {
      std::string text = expansion_.word(value);
      if (adds && !variables_[name].empty()) text = variables_[name].front() + text;
      items = {std::move(text)};
    }
    set_variable(name, std::move(items), token.line);
    return true;
  }

  static void add_words(const ShellToken& token,
                        const std::vector<std::string>& texts,
                        std::vector<ShellWord>& words) {
    for (const std::string& text : texts) {
      words.push_back({without_marks(text), token.line, has_marks(text)});
    }
  }
  /// Divides the text at its blanks.
  static void add_words(const ShellToken& token,
                        const std::string& text,
                        std::vector<ShellWord>& words) {
    std::size_t end = 0;
    constexpr const char* kBlanks = " \t\r\n";
    for (std::size_t at = 0; (at = text.find_first_not_of(kBlanks, end)) != text.npos;) {
      end = std::min(text.find_first_of(kBlanks, at), text.size());
      const std::string word = text.substr(at, end - at);
      words.push_back({without_marks(word), token.line, has_marks(word)});
    }
  }

  /// What stands in [ ... ]: one comparison, perhaps denied.
  Status test(const Tokens& tokens, std::size_t at) {
    std::vector<std::string> words;
    for (; at < tokens.size(); ++at) {
      if (tokens[at].kind == Kind::kWord) words.push_back(expansion_.known_word(tokens[at].text));
    }
    if (!words.empty() && (words.back() == "]" || words.back() == "]]")) words.pop_back();
    bool denied = false;
    while (!words.empty() && words.front() == "!") {
      words.erase(words.begin());
      denied = !denied;
    }
    const auto holds = comparison(words);
    if (!holds) return Status::kUnknown;
    return *holds != denied ? Status::kTrue : Status::kFalse;
  }

  std::optional<bool> comparison(const std::vector<std::string>& words) {
    if (words.size() == 1) return !words[0].empty();
    if (words.size() == 2 && words[0] == "-n") return !words[1].empty();
    if (words.size() == 2 && words[0] == "-z") return words[1].empty();
    if (words.size() == 2 && words[0] == "-v") return variables_.contains(words[1]);
    if (words.size() != 3) return std::nullopt;
    const std::string& sign = words[1];
    if (sign == "=" || sign == "==") return is_matched(words[0], words[2]);
    if (sign == "!=") return !is_matched(words[0], words[2]);
    const auto left = expansion_.sum(words[0]);
    const auto right = expansion_.sum(words[2]);
    if (!left || !right) return std::nullopt;
    if (sign == "-eq") return *left == *right;
    if (sign == "-ne") return *left != *right;
    if (sign == "-gt") return *left > *right;
    if (sign == "-ge") return *left >= *right;
    if (sign == "-lt") return *left < *right;
    if (sign == "-le") return *left <= *right;
    return std::nullopt;
  }

  std::string origin_;
  const ScriptFinder& find_script_;
  ShellVariables variables_;
  std::map<std::string, int> lines_;  ///< where each variable has its value
  std::map<std::string, std::shared_ptr<const Tokens>> functions_;
  ShellExpansion expansion_;
  ShellScript script_;
  bool stopped_ = false;
  int depth_ = 0;
  int list_depth_ = 0;
  int steps_ = 0;
};

}  // namespace

ShellScript read_shell_script(string_view text,
                              const std::string& origin,
                              const ScriptFinder& find_script,
                              const std::map<std::string, std::string>& environment) {
  Interpreter interpreter(origin, find_script);
  for (const auto& [name, value] : environment) interpreter.set_variable(name, {value}, 0);
  interpreter.run_text(text, 1);
  return std::move(interpreter).result();
}

}  // namespace sim
