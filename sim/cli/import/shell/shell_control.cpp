#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/errors.h"
#include "sim/cli/import/shell/shell_interpreter.h"

namespace sim {
namespace {

ShellStatus denied(ShellStatus status) {
  if (status == ShellStatus::kTrue) return ShellStatus::kFalse;
  return status == ShellStatus::kFalse ? ShellStatus::kTrue : status;
}

}  // namespace

void ShellInterpreter::run_text(std::string_view text, int line, ShellMode mode) {
  constexpr int kDeepestScript = 8;
  if (++depth_ > kDeepestScript) {
    --depth_;
    return;
  }
  const ShellTokens tokens = shell_tokens(text, line, origin_);
  std::size_t at = 0;
  while (at < tokens.size()) {
    run_list(tokens, at, {}, mode);
    if (at < tokens.size()) ++at;  // a closing word without its opening one
  }
  --depth_;
}

void ShellInterpreter::count_step() {
  constexpr int kMostSteps = 200'000;
  if (++steps_ <= kMostSteps) return;
  throw estimator::UserError({.what = origin_ + " is too long a script",
                              .where = fmt::format("more than {} commands", kMostSteps),
                              .help = "write its arguments in one command"});
}

void ShellInterpreter::enter_list() {
  constexpr int kDeepestList = 64;
  if (++list_depth_ <= kDeepestList) return;
  throw estimator::UserError({.what = origin_ + " is nested too deeply",
                              .where = "its commands",
                              .help = "write its arguments in one command"});
}

bool ShellInterpreter::at_word(const ShellTokens& tokens, std::size_t at, std::string_view text) {
  return at < tokens.size() && tokens[at].is(ShellToken::Kind::kWord, text);
}

bool ShellInterpreter::at_operator(const ShellTokens& tokens,
                                   std::size_t at,
                                   std::string_view text) {
  return at < tokens.size() && tokens[at].is(ShellToken::Kind::kOperator, text);
}

bool ShellInterpreter::separates(const ShellToken& token) {
  return token.kind == ShellToken::Kind::kOperator;
}

bool ShellInterpreter::runs(ShellMode mode) {
  return mode == ShellMode::kGuess || mode == ShellMode::kRun;
}

void ShellInterpreter::skip_to_end(const ShellTokens& tokens,
                                   std::size_t& at,
                                   std::string_view end) {
  if (at_word(tokens, at, end) || at_operator(tokens, at, end)) ++at;
}

bool ShellInterpreter::closes_list(const ShellToken& token,
                                   const std::set<std::string_view>& ends) const {
  static const std::set<std::string_view> kClosing = {
      "then", "else", "elif", "fi", "do", "done", "esac", "}", ")", ";;"};
  const bool closes =
      (token.kind == ShellToken::Kind::kWord || token.kind == ShellToken::Kind::kOperator) &&
      kClosing.contains(token.text);
  return closes && (ends.contains(token.text) || list_depth_ > 1);
}

ShellStatus ShellInterpreter::run_list(const ShellTokens& tokens,
                                       std::size_t& at,
                                       const std::set<std::string_view>& ends,
                                       ShellMode mode) {
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
    const ShellMode its_mode = stopped_ ? ShellMode::kSkip : link.mode(mode);
    const ShellStatus ended = guess(link.is_undecided() && its_mode != ShellMode::kSkip,
                                    [&] { return run_command(tokens, at, its_mode); });
    if (link.is_undecided()) {
      link.before = link.joined(ended);
    } else if (its_mode != ShellMode::kSkip || link.sign.empty()) {
      link.before = ended;
    }
  }
  --list_depth_;
  return link.before;
}

ShellStatus ShellInterpreter::run_command(const ShellTokens& tokens,
                                          std::size_t& at,
                                          ShellMode mode) {
  count_step();
  const ShellToken& first = tokens[at];
  if (first.kind == ShellToken::Kind::kDirective) {
    std::vector<ShellWord>& directives = script_.directives;
    if (runs(mode)) add_words(first, expansion_.word(comment_cut(first.text)), directives);
    ++at;
    return ShellStatus::kStarted;
  }
  if (first.kind == ShellToken::Kind::kOperator && first.text == "(")
    return run_subshell(tokens, at, mode);
  if (first.kind == ShellToken::Kind::kWord) {
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

std::string_view ShellInterpreter::comment_cut(std::string_view text) {
  return text.substr(0, text.find(" #"));
}

ShellStatus ShellInterpreter::run_denied(const ShellTokens& tokens,
                                         std::size_t& at,
                                         ShellMode mode) {
  if (++at >= tokens.size()) return ShellStatus::kUnknown;
  return denied(run_simple(tokens, at, mode));
}

ShellStatus ShellInterpreter::run_braces(const ShellTokens& tokens,
                                         std::size_t& at,
                                         ShellMode mode) {
  const ShellStatus status = run_list(tokens, ++at, {"}"}, mode);
  skip_to_end(tokens, at, "}");
  return status;
}

ShellStatus ShellInterpreter::run_subshell(const ShellTokens& tokens,
                                           std::size_t& at,
                                           ShellMode mode) {
  expansion_.count(mode == ShellMode::kSkip ? 0 : state_.bytes());
  std::optional<ShellState> outer;
  if (mode != ShellMode::kSkip) outer = state_;
  const ShellStatus status = run_list(tokens, ++at, {")"}, mode);
  skip_to_end(tokens, at, ")");
  if (outer) state_ = std::move(*outer);
  if (mode != ShellMode::kSkip) stopped_ = false;
  return status;
}

ShellStatus ShellInterpreter::run_if(const ShellTokens& tokens, std::size_t& at, ShellMode mode) {
  bool is_undecided = false;
  std::set<std::string> before = state_.begin_guess();
  ShellMode rest = mode;
  while (at_word(tokens, at, "if") || at_word(tokens, at, "elif")) {
    const ShellStatus status = run_list(tokens, ++at, {"then"}, rest);
    skip_to_end(tokens, at, "then");
    const bool is_decided = status == ShellStatus::kTrue || status == ShellStatus::kFalse;
    ShellMode branch = status == ShellStatus::kTrue ? rest : ShellMode::kSkip;
    if (!is_decided) branch = std::min(rest, ShellMode::kNote);
    run_list(tokens, at, {"elif", "else", "fi"}, branch);
    if (status == ShellStatus::kTrue) rest = ShellMode::kSkip;
    if (!is_decided) rest = std::min(rest, ShellMode::kGuess);
    is_undecided = is_undecided || (!is_decided && branch != ShellMode::kSkip);
  }
  if (at_word(tokens, at, "else")) run_list(tokens, ++at, {"fi"}, rest);
  skip_to_end(tokens, at, "fi");
  state_.end_guess(std::move(before), is_undecided);
  return ShellStatus::kStarted;
}

ShellStatus ShellInterpreter::run_for(const ShellTokens& tokens, std::size_t& at, ShellMode mode) {
  ++at;
  if (at < tokens.size() && tokens[at].kind == ShellToken::Kind::kSum)
    return run_loop_body(tokens, at, mode);
  std::vector<std::string> items;
  std::string name;
  if (at < tokens.size() && tokens[at].kind == ShellToken::Kind::kWord) name = tokens[at++].text;
  if (at_word(tokens, at, "in")) {
    for (++at; at < tokens.size() && !separates(tokens[at]); ++at) {
      for (std::string& word : expansion_.words(tokens[at].text)) items.push_back(word);
    }
  }
  while (at < tokens.size() && !at_word(tokens, at, "do")) ++at;
  skip_to_end(tokens, at, "do");
  const ShellMode its_mode = items.empty() ? ShellMode::kSkip : mode;
  const int line = at < tokens.size() ? tokens[at].line : 0;
  if (runs(its_mode)) set_variable(name, {items.front()}, line);
  if (its_mode == ShellMode::kNote) state_.may_set(name);
  run_list(tokens, at, {"done"}, its_mode);
  if (runs(its_mode) && items.size() > 1 && at < tokens.size()) {
    script_.loops.push_back({name, without_marks(items.front()), line, tokens[at].line});
  }
  skip_to_end(tokens, at, "done");
  return ShellStatus::kStarted;
}

ShellStatus ShellInterpreter::run_while(const ShellTokens& tokens,
                                        std::size_t& at,
                                        ShellMode mode) {
  const ShellStatus ends = tokens[at].text == "until" ? ShellStatus::kTrue : ShellStatus::kFalse;
  const bool has_arguments = state_.variables().contains("#");
  if (!has_arguments) state_.variables()["#"] = {"0"};
  const ShellMode note = std::min(mode, ShellMode::kNote);
  std::set<std::string> before = state_.begin_guess();
  const ShellStatus status = run_list(tokens, ++at, {"do"}, note);
  if (!has_arguments) state_.variables().erase("#");
  state_.end_guess(std::move(before), status != ends && mode != ShellMode::kSkip);
  return run_loop_body(tokens, at, status == ends ? ShellMode::kSkip : note);
}

ShellStatus ShellInterpreter::run_loop_body(const ShellTokens& tokens,
                                            std::size_t& at,
                                            ShellMode mode) {
  while (at < tokens.size() && !at_word(tokens, at, "do")) ++at;
  skip_to_end(tokens, at, "do");
  guess(mode != ShellMode::kSkip,
        [&] { return run_list(tokens, at, {"done"}, std::min(mode, ShellMode::kNote)); });
  skip_to_end(tokens, at, "done");
  return ShellStatus::kStarted;
}

ShellStatus ShellInterpreter::run_case(const ShellTokens& tokens, std::size_t& at, ShellMode mode) {
  ++at;
  std::string value;
  if (at < tokens.size()) value = expansion_.tested_word(tokens[at++].text);
  while (at < tokens.size() && !at_word(tokens, at, "in")) ++at;
  skip_to_end(tokens, at, "in");
  const bool is_undecided = has_marks(value) && mode != ShellMode::kSkip;
  std::set<std::string> before = state_.begin_guess();
  ShellMode rest = is_undecided ? std::min(mode, ShellMode::kGuess) : mode;
  while (at < tokens.size() && !at_word(tokens, at, "esac")) {
    const std::optional<bool> is_it = read_case_patterns(tokens, at, value);
    if (at_word(tokens, at, "esac")) break;
    skip_to_end(tokens, at, ")");
    const ShellMode branch =
        is_it ? (*is_it ? rest : ShellMode::kSkip) : std::min(rest, ShellMode::kNote);
    run_list(tokens, at, {";;", "esac"}, branch);
    if (is_it == std::optional(true)) rest = ShellMode::kSkip;
    if (at < tokens.size() && !at_operator(tokens, at, ";;") && !at_word(tokens, at, "esac")) {
      ++at;  // a closing word that closes nothing
    }
    skip_to_end(tokens, at, ";;");
  }
  skip_to_end(tokens, at, "esac");
  state_.end_guess(std::move(before), is_undecided);
  return ShellStatus::kStarted;
}

std::optional<bool> ShellInterpreter::read_case_patterns(const ShellTokens& tokens,
                                                         std::size_t& at,
                                                         const std::string& value) {
  bool is_it = false;
  bool is_decided = true;
  while (at < tokens.size() && !at_operator(tokens, at, ")") && !at_word(tokens, at, "esac")) {
    const ShellToken& token = tokens[at++];
    if (token.kind != ShellToken::Kind::kWord) continue;
    const std::string pattern = expansion_.tested_word(token.text);
    is_decided = is_decided && !has_marks(pattern) && (!has_marks(value) || pattern == "*");
    is_it = is_it || pattern == "*" || matches_shell_pattern(value, pattern);
  }
  if (is_decided) return is_it;
  return std::nullopt;
}

bool ShellInterpreter::is_function(const ShellTokens& tokens, std::size_t at) {
  return at_operator(tokens, at + 1, "(") && at_operator(tokens, at + 2, ")");
}

ShellStatus ShellInterpreter::read_function(const ShellTokens& tokens, std::size_t& at) {
  if (tokens[at].text == "function") ++at;
  if (at >= tokens.size()) return ShellStatus::kUnknown;
  const std::string name = tokens[at++].text;
  while (at < tokens.size() && separates(tokens[at])) ++at;
  if (!at_word(tokens, at, "{")) return ShellStatus::kStarted;
  const std::size_t begin = ++at;
  run_list(tokens, at, {"}"}, ShellMode::kSkip);
  functions_[name] =
      std::make_shared<const ShellTokens>(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                          tokens.begin() + static_cast<std::ptrdiff_t>(at));
  skip_to_end(tokens, at, "}");
  return ShellStatus::kTrue;
}

ShellStatus ShellInterpreter::call_function(const ShellTokens& body,
                                            const std::vector<std::string>& arguments,
                                            ShellMode mode) {
  constexpr int kDeepestCall = 8;
  if (++depth_ > kDeepestCall) {
    --depth_;
    return ShellStatus::kUnknown;
  }
  state_.begin_call(arguments);
  std::size_t at = 0;
  run_list(body, at, {}, runs(mode) ? ShellMode::kRun : mode);
  stopped_ = false;  // by its return
  state_.end_call();
  --depth_;
  return ShellStatus::kStarted;
}

}  // namespace sim
