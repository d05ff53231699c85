#include "sim/cli/import/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>

#include "estimator/base/errors.h"
#include "sim/cli/import/shell_expansion.h"
#include "sim/cli/import/shell_state.h"
#include "sim/cli/import/shell_sum.h"
#include "sim/cli/import/shell_test.h"
#include "sim/cli/import/shell_tokens.h"

namespace sim {
namespace {

using Kind = ShellToken::Kind;
using Tokens = std::vector<ShellToken>;
using std::string_view;

/// How a command ended. A program that is started is taken to succeed, but for `if`.
enum class Status { kUnknown, kStarted, kTrue, kFalse };

/// What becomes of commands: nothing; only their variables are noted, as a shell perhaps runs them;
/// they run as the more likely branch, which does not end the script; they run.
enum class Mode { kSkip, kNote, kGuess, kRun };

Status status_of(std::optional<bool> holds) {
  if (!holds) return Status::kUnknown;
  return *holds ? Status::kTrue : Status::kFalse;
}

Status denied(Status status) {
  if (status == Status::kTrue) return Status::kFalse;
  return status == Status::kFalse ? Status::kTrue : status;
}

/// The length of the name of a variable with which the word begins.
std::size_t variable_length(string_view word) {
  const auto end = std::find_if_not(word.begin(), word.end(), is_shell_name_letter);
  const auto length = static_cast<std::size_t>(end - word.begin());
  return length > 0 && std::isdigit(static_cast<unsigned char>(word[0])) != 0 ? 0 : length;
}
bool is_name(string_view word) { return !word.empty() && variable_length(word) == word.size(); }

/// The length of "NAME" in "NAME=value" or "NAME+=value"; 0 for other words.
std::size_t assigned_name(string_view word) {
  const std::size_t length = variable_length(word);
  if (length == 0) return 0;
  const string_view rest = word.substr(length);
  return rest.starts_with('=') || rest.starts_with("+=") ? length : 0;
}

class Interpreter {
 public:
  Interpreter(std::string origin, const ScriptFinder& find_script)
      : origin_(std::move(origin)),
        find_script_(find_script),
        expansion_(state_.variables(), origin_) {}

  void run_text(string_view text, int line, Mode mode = Mode::kRun) {
    constexpr int kDeepestScript = 8;
    if (++depth_ > kDeepestScript) {
      --depth_;
      return;
    }
    const Tokens tokens = shell_tokens(text, line, origin_);
    std::size_t at = 0;
    while (at < tokens.size()) {
      run_list(tokens, at, {}, mode);
      if (at < tokens.size()) ++at;  // a closing word without its opening one
    }
    --depth_;
  }

  void set_variable(const std::string& name, std::vector<std::string> items, int line) {
    state_.set(name, std::move(items), line);
  }

  ShellScript result() && {
    for (const auto& [name, items] : state_.variables()) {
      std::vector<ShellWord> words;
      for (const std::string& item : items) {
        add_words(ShellToken{.text = "$", .line = state_.line(name), .items = {}}, item, words);
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

  /// How the next command of a list depends on those before it.
  struct Link {
    string_view sign;  ///< &&, || or neither
    Status before = Status::kStarted;

    Mode mode(Mode outer) const {
      const bool is_and = sign == "&&";
      if (sign.empty()) return outer;
      if (before == Status::kUnknown) return std::min(outer, is_and ? Mode::kGuess : Mode::kNote);
      return is_and == (before != Status::kFalse) ? outer : Mode::kSkip;
    }
    bool is_undecided() const { return !sign.empty() && before == Status::kUnknown; }
    /// Of the whole so far, when the command that was not decided ended.
    Status joined(Status ended) const {
      const Status decides = sign == "&&" ? Status::kFalse : Status::kTrue;
      return ended == decides ? decides : Status::kUnknown;
    }
  };

  /// Runs what `run` does. Where it is not decided whether a shell does it, no value of a variable
  /// that it assigns is known after it.
  template <class Run>
  Status guess(bool is_undecided, const Run& run) {
    std::set<std::string> before = state_.begin_guess();
    const Status status = run();
    state_.end_guess(std::move(before), is_undecided);
    return status;
  }

  void enter_list() {
    constexpr int kDeepestList = 64;
    if (++list_depth_ <= kDeepestList) return;
    throw estimator::UserError({.what = origin_ + " is nested too deeply",
                                .where = "its commands",
                                .help = "write its arguments in one command"});
  }

  bool closes_list(const ShellToken& token, const std::set<string_view>& ends) const {
    static const std::set<string_view> kClosing = {
        "then", "else", "elif", "fi", "do", "done", "esac", "}", ")", ";;"};
    const bool closes = (token.kind == Kind::kWord || token.kind == Kind::kOperator) &&
                        kClosing.contains(token.text);
    return closes && (ends.contains(token.text) || list_depth_ > 1);
  }

  /// Runs commands up to one of the words or operators in `ends`, which is not taken.
  Status run_list(const Tokens& tokens,
                  std::size_t& at,
                  const std::set<string_view>& ends,
                  Mode mode) {
    enter_list();
    Link link;
    bool awaits_command = false;  // a line may end behind && and ||
    while (at < tokens.size() && !closes_list(tokens[at], ends)) {
      const ShellToken& token = tokens[at];
      if (separates(token) && token.text != "(") {
        awaits_command =
            token.text == "&&" || token.text == "||" || (awaits_command && token.text == "\n");
        if (awaits_command && token.text != "\n") link.sign = token.text;
        if (!awaits_command && token.text != "|") link.sign = {};
        ++at;
        continue;
      }
      awaits_command = false;
      const Mode its_mode = stopped_ ? Mode::kSkip : link.mode(mode);
      const Status ended = guess(link.is_undecided() && its_mode != Mode::kSkip,
                                 [&] { return run_command(tokens, at, its_mode); });
      if (link.is_undecided()) {
        link.before = link.joined(ended);
      } else if (its_mode != Mode::kSkip || link.sign.empty()) {
        link.before = ended;
      }
    }
    --list_depth_;
    return link.before;
  }

  void skip_to_end(const Tokens& tokens, std::size_t& at, string_view end) {
    if (at_word(tokens, at, end) || at_operator(tokens, at, end)) ++at;
  }

  Status run_command(const Tokens& tokens, std::size_t& at, Mode mode) {
    count_step();
    const ShellToken& first = tokens[at];
    if (first.kind == Kind::kDirective) {
      std::vector<ShellWord>& directives = script_.directives;
      if (runs(mode)) add_words(first, expansion_.word(comment_cut(first.text)), directives);
      ++at;
      return Status::kStarted;
    }
    if (first.kind == Kind::kOperator && first.text == "(") return run_subshell(tokens, at, mode);
    if (first.kind == Kind::kWord) {
      if (first.text == "{") return run_braces(tokens, at, mode);
      if (first.text == "if") return run_if(tokens, at, mode);
      if (first.text == "for") return run_for(tokens, at, mode);
      if (first.text == "while" || first.text == "until") return run_while(tokens, at, mode);
      if (first.text == "case") return run_case(tokens, at, mode);
      if (first.text == "function" || is_function(tokens, at)) return read_function(tokens, at);
      if (first.text == "!") return run_denied(tokens, at, mode);
    }
    return run_simple(tokens, at, mode);
  }

  static bool runs(Mode mode) { return mode == Mode::kGuess || mode == Mode::kRun; }

  /// Without a comment at the end of the line.
  static string_view comment_cut(string_view text) { return text.substr(0, text.find(" #")); }

  Status run_denied(const Tokens& tokens, std::size_t& at, Mode mode) {
    if (++at >= tokens.size()) return Status::kUnknown;
    return denied(run_simple(tokens, at, mode));
  }

  Status run_braces(const Tokens& tokens, std::size_t& at, Mode mode) {
    const Status status = run_list(tokens, ++at, {"}"}, mode);
    skip_to_end(tokens, at, "}");
    return status;
  }

  /// Its variables are its own, and it ends alone.
  Status run_subshell(const Tokens& tokens, std::size_t& at, Mode mode) {
    expansion_.count(mode == Mode::kSkip ? 0 : state_.bytes());
    std::optional<ShellState> outer;
    if (mode != Mode::kSkip) outer = state_;
    const Status status = run_list(tokens, ++at, {")"}, mode);
    skip_to_end(tokens, at, ")");
    if (outer) state_ = std::move(*outer);
    if (mode != Mode::kSkip) stopped_ = false;
    return status;
  }

  /// The branch of a condition that is not decided is not run, but its variables are noted; the
  /// branch after it is the more likely one.
  Status run_if(const Tokens& tokens, std::size_t& at, Mode mode) {
    bool is_undecided = false;
    std::set<std::string> before = state_.begin_guess();
    Mode rest = mode;
    while (at_word(tokens, at, "if") || at_word(tokens, at, "elif")) {
      const Status status = run_list(tokens, ++at, {"then"}, rest);
      skip_to_end(tokens, at, "then");
      const bool is_decided = status == Status::kTrue || status == Status::kFalse;
      Mode branch = status == Status::kTrue ? rest : Mode::kSkip;
      if (!is_decided) branch = std::min(rest, Mode::kNote);
      run_list(tokens, at, {"elif", "else", "fi"}, branch);
      if (status == Status::kTrue) rest = Mode::kSkip;
      if (!is_decided) rest = std::min(rest, Mode::kGuess);
      is_undecided = is_undecided || (!is_decided && branch != Mode::kSkip);
    }
    if (at_word(tokens, at, "else")) run_list(tokens, ++at, {"fi"}, rest);
    skip_to_end(tokens, at, "fi");
    state_.end_guess(std::move(before), is_undecided);
    return Status::kStarted;
  }

  /// Runs for the first item alone: a script that trains once for each trains with the first first.
  Status run_for(const Tokens& tokens, std::size_t& at, Mode mode) {
    ++at;
    if (at < tokens.size() && tokens[at].kind == Kind::kSum) return run_loop_body(tokens, at, mode);
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
    const Mode its_mode = items.empty() ? Mode::kSkip : mode;
    const int line = at < tokens.size() ? tokens[at].line : 0;
    if (runs(its_mode)) set_variable(name, {items.front()}, line);
    if (its_mode == Mode::kNote) state_.may_set(name);
    run_list(tokens, at, {"done"}, its_mode);
    skip_to_end(tokens, at, "done");
    return Status::kStarted;
  }

  /// Reads arguments or waits for something, as a rule: not run. Without arguments nothing is read.
  Status run_while(const Tokens& tokens, std::size_t& at, Mode mode) {
    const Status ends = tokens[at].text == "until" ? Status::kTrue : Status::kFalse;
    const bool has_arguments = state_.variables().contains("#");
    if (!has_arguments) state_.variables()["#"] = {"0"};
    const Mode note = std::min(mode, Mode::kNote);
    std::set<std::string> before = state_.begin_guess();
    const Status status = run_list(tokens, ++at, {"do"}, note);
    if (!has_arguments) state_.variables().erase("#");
    state_.end_guess(std::move(before), status != ends && mode != Mode::kSkip);
    return run_loop_body(tokens, at, status == ends ? Mode::kSkip : note);
  }

  /// How often a loop runs is not known, and neither is what it makes of its variables.
  Status run_loop_body(const Tokens& tokens, std::size_t& at, Mode mode) {
    while (at < tokens.size() && !at_word(tokens, at, "do")) ++at;
    skip_to_end(tokens, at, "do");
    guess(mode != Mode::kSkip,
          [&] { return run_list(tokens, at, {"done"}, std::min(mode, Mode::kNote)); });
    skip_to_end(tokens, at, "done");
    return Status::kStarted;
  }

  /// Of a value that is not decided, the branch of all others is the more likely one.
  Status run_case(const Tokens& tokens, std::size_t& at, Mode mode) {
    ++at;
    std::string value;
    if (at < tokens.size()) value = expansion_.tested_word(tokens[at++].text);
    while (at < tokens.size() && !at_word(tokens, at, "in")) ++at;
    skip_to_end(tokens, at, "in");
    const bool is_undecided = has_marks(value) && mode != Mode::kSkip;
    std::set<std::string> before = state_.begin_guess();
    Mode rest = is_undecided ? std::min(mode, Mode::kGuess) : mode;
    while (at < tokens.size() && !at_word(tokens, at, "esac")) {
      const std::optional<bool> is_it = read_case_patterns(tokens, at, value);
      if (at_word(tokens, at, "esac")) break;
      skip_to_end(tokens, at, ")");
      const Mode branch = is_it ? (*is_it ? rest : Mode::kSkip) : std::min(rest, Mode::kNote);
      run_list(tokens, at, {";;", "esac"}, branch);
      if (is_it == std::optional(true)) rest = Mode::kSkip;
      if (at < tokens.size() && !at_operator(tokens, at, ";;") && !at_word(tokens, at, "esac")) {
        ++at;  // a closing word that closes nothing
      }
      skip_to_end(tokens, at, ";;");
    }
    skip_to_end(tokens, at, "esac");
    state_.end_guess(std::move(before), is_undecided);
    return Status::kStarted;
  }

  /// Whether one of the patterns up to the bracket matches.
  std::optional<bool> read_case_patterns(const Tokens& tokens,
                                         std::size_t& at,
                                         const std::string& value) {
    bool is_it = false;
    bool is_decided = true;
    while (at < tokens.size() && !at_operator(tokens, at, ")") && !at_word(tokens, at, "esac")) {
      const ShellToken& token = tokens[at++];
      if (token.kind != Kind::kWord) continue;
      const std::string pattern = expansion_.tested_word(token.text);
      is_decided = is_decided && !has_marks(pattern) && (!has_marks(value) || pattern == "*");
      is_it = is_it || pattern == "*" || matches_shell_pattern(value, pattern);
    }
    if (is_decided) return is_it;
    return std::nullopt;
  }

  static bool is_function(const Tokens& tokens, std::size_t at) {
    return at_operator(tokens, at + 1, "(") && at_operator(tokens, at + 2, ")");
  }

  Status read_function(const Tokens& tokens, std::size_t& at) {
    if (tokens[at].text == "function") ++at;
    if (at >= tokens.size()) return Status::kUnknown;
    const std::string name = tokens[at++].text;
    while (at < tokens.size() && separates(tokens[at])) ++at;
    if (!at_word(tokens, at, "{")) return Status::kStarted;
    const std::size_t begin = ++at;
    run_list(tokens, at, {"}"}, Mode::kSkip);
    functions_[name] =
        std::make_shared<const Tokens>(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                       tokens.begin() + static_cast<std::ptrdiff_t>(at));
    skip_to_end(tokens, at, "}");
    return Status::kTrue;
  }

  Status call_function(const Tokens& body, const std::vector<std::string>& arguments, Mode mode) {
    constexpr int kDeepestCall = 8;
    if (++depth_ > kDeepestCall) {
      --depth_;
      return Status::kUnknown;
    }
    state_.begin_call(arguments);
    std::size_t at = 0;
    run_list(body, at, {}, runs(mode) ? Mode::kRun : mode);
    stopped_ = false;  // by its return
    state_.end_call();
    --depth_;
    return Status::kStarted;
  }

  Status run_simple(const Tokens& tokens, std::size_t& at, Mode mode) {
    const std::size_t begin = at;
    while (at < tokens.size() && !separates(tokens[at])) ++at;
    if (at < tokens.size() && tokens[at].text == "(" && at == begin) ++at;
    const std::size_t end = at;
    // The here document of a command stands behind the end of its line.
    if (at + 1 < tokens.size() && at_operator(tokens, at, "\n") &&
        tokens[at + 1].kind == Kind::kHeredoc) {
      if (runs(mode)) run_heredoc(tokens, begin, end);
    }
    if (mode == Mode::kSkip || end == begin || tokens[begin].kind == Kind::kHeredoc) {
      return Status::kUnknown;
    }
    return execute(Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                          tokens.begin() + static_cast<std::ptrdiff_t>(end)),
                   mode);
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

  Status execute(const Tokens& tokens, Mode mode) {
    if (tokens[0].kind == Kind::kTest) {
      return status_of(double_bracket_holds(tokens[0].text, test_subject()));
    }
    if (tokens[0].kind == Kind::kSum) return run_sum(tokens[0].text, tokens[0].line, mode);
    std::size_t at = 0;
    while (at < tokens.size() && assign(tokens[at], mode)) ++at;
    if (at == tokens.size()) return Status::kTrue;
    const std::string& name = tokens[at].text;
    if (name == "[" || name == "test") return test(tokens, at + 1);
    if (name == "true" || name == ":") return Status::kTrue;
    if (name == "false" || name == "getopts") return Status::kFalse;
    if (name == "let") return run_let(tokens, at + 1, mode);
    static const std::set<string_view> kDeclaring = {
        "export", "declare", "local", "readonly", "typeset"};
    if (kDeclaring.contains(name)) return declare(tokens, at, mode);
    std::vector<std::string> words;
    ShellCommand command;
    for (; at < tokens.size(); ++at) {
      if (tokens[at].kind != Kind::kWord) continue;
      const std::vector<std::string> expanded = expansion_.words(tokens[at].text);
      add_words(tokens[at], expanded, command.words);
      words.insert(words.end(), expanded.begin(), expanded.end());
    }
    return words.empty() ? Status::kTrue : run_program(std::move(command), words, mode);
  }

  /// The variables of a function are its own.
  Status declare(const Tokens& tokens, std::size_t at, Mode mode) {
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
    return Status::kTrue;
  }

  /// (( ... )): holds if the sum is not 0. What nobody sets is 0 in it, but is asked for where it
  /// becomes the value of a variable.
  Status run_sum(string_view raw, int line, Mode mode) {
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

  Status run_let(const Tokens& tokens, std::size_t at, Mode mode) {
    Status status = Status::kUnknown;
    for (; at < tokens.size(); ++at) {
      status = run_sum(expansion_.word(tokens[at].text), tokens[at].line, mode);
    }
    return status;
  }

  Status run_program(ShellCommand command, const std::vector<std::string>& words, Mode mode) {
    const std::string& name = command.words.front().text;
    if (name == "exit" || name == "return") {
      stopped_ = mode == Mode::kRun;
      return Status::kStarted;
    }
    if (name == "set" || name == "shift") return change_arguments(words, mode);
    if (name == "unset" || name == "read") return change_variables(words, mode);
    if (name == "eval") {
      std::string text;
      for (std::size_t i = 1; i < command.words.size(); ++i) text += command.words[i].text + " ";
      run_text(text, command.words.front().line, mode);
      return Status::kStarted;
    }
    if (name == "source" || name == ".") {
      if (command.words.size() > 1) run_file(command.words[1], mode);
      return Status::kStarted;
    }
    if (const auto function = functions_.find(name); function != functions_.end()) {
      const std::shared_ptr<const Tokens> body = function->second;  // the call may define it anew
      return call_function(*body, {words.begin() + 1, words.end()}, mode);
    }
    if (!runs(mode)) return Status::kStarted;
    if (!runs_another_script(command)) script_.commands.push_back(std::move(command));
    return Status::kStarted;
  }

  /// set -- WORDS, and shift.
  Status change_arguments(const std::vector<std::string>& words, Mode mode) {
    if (!runs(mode)) return Status::kTrue;
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
    return Status::kTrue;
  }

  /// unset NAMES, and read NAMES, whose values are not known.
  Status change_variables(const std::vector<std::string>& words, Mode mode) {
    for (const std::string& word : words) {
      if (&word == &words.front() || !is_name(word)) continue;
      if (!runs(mode)) {
        state_.may_set(word);
      } else {
        words.front() == "unset" ? state_.unset(word) : state_.set_undecided(word);
      }
    }
    return words.front() == "unset" ? Status::kTrue : Status::kUnknown;
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

  bool run_file(const ShellWord& word, Mode mode = Mode::kRun) {
    const auto text = find_script_ ? find_script_(known_part(marked_of(word))) : std::nullopt;
    if (!text) return false;
    run_text(*text, 1, mode);
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

  bool assign(const ShellToken& token, Mode mode) {
    const std::size_t length = assigned_name(token.text);
    if (length == 0) return false;
    const std::string name = token.text.substr(0, length);
    const bool adds = token.text[length] == '+';
    const string_view value = string_view(token.text).substr(length + (adds ? 2 : 1));
    if (runs(mode)) {
      set_variable(name, assigned_items(token, name, adds, value), token.line);
    } else {
      state_.may_set(name);
    }
    return true;
  }

  std::vector<std::string> assigned_items(const ShellToken& token,
                                          const std::string& name,
                                          bool adds,
                                          string_view value) {
    std::vector<std::string> old;
    if (adds) old = state_.variables()[name];
    if (token.kind != Kind::kArray) {
      std::string text = expansion_.word(value);
      return {adds && !old.empty() ? old.front() + text : std::move(text)};
    }
    for (const ShellToken& item : token.items) {
      for (std::string& word : expansion_.words(item.text)) old.push_back(std::move(word));
    }
    return old;
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

  TestSubject test_subject() { return {expansion_, state_.variables(), find_script_}; }

  /// What stands in [ ... ].
  Status test(const Tokens& tokens, std::size_t at) {
    std::vector<std::string> words;
    for (; at < tokens.size(); ++at) {
      if (tokens[at].kind == Kind::kWord) words.push_back(tokens[at].text);
    }
    if (!words.empty() && words.back() == "]") words.pop_back();
    return status_of(bracket_holds(words, test_subject()));
  }

  std::string origin_;
  const ScriptFinder& find_script_;
  ShellState state_;
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
