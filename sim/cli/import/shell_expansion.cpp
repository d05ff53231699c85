#include "sim/cli/import/shell_expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "estimator/base/errors.h"
#include "estimator/base/text.h"
#include "sim/cli/import/glob.h"
#include "sim/cli/import/shell_tokens.h"

namespace sim {
namespace {

using std::string_view;

bool is_variable_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

std::size_t name_length(string_view text) {
  if (!text.empty() && string_view("@*#?$!-").find(text[0]) != string_view::npos) return 1;
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) return 1;
  const auto end = std::find_if_not(text.begin(), text.end(), is_variable_letter);
  return static_cast<std::size_t>(end - text.begin());
}

std::string unknown(string_view written) {
  return fmt::format("{}{}{}", kUnknownBegins, without_marks(std::string(written)), kUnknownEnds);
}

std::string changed_case(std::string text, int (*change)(int)) {
  std::transform(text.begin(), text.end(), text.begin(), [&](unsigned char letter) {
    return static_cast<char>(change(letter));
  });
  return text;
}

/// ${NAME%pattern} and the like: the shortest or longest end or beginning that the pattern matches
/// is left out.
std::string cut(const std::string& text, bool from_end, bool longest, string_view pattern) {
  const string_view whole = text;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? text.size() - i : i;
    const std::size_t begin = from_end ? text.size() - length : 0;
    if (!matches_glob(whole.substr(begin, length), pattern)) continue;
    std::string rest(from_end ? whole.substr(0, begin) : whole.substr(length));
    return estimator::find_non_utf8(rest) == rest.npos ? rest : text;
  }
  return text;
}

/// A sum of numbers, names, + - * / % and brackets.
class Sum {
 public:
  Sum(string_view text, const ShellVariables& variables) : text_(text), variables_(variables) {}

  std::optional<int64_t> value() {
    const auto result = read_sum(0);
    skip_blanks();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  using Value = std::optional<int64_t>;

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char next() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Value read_sum(int depth) {
    Value left = read_product(depth);
    while (left && (next() == '+' || next() == '-')) {
      const bool adds = text_[at_++] == '+';
      const Value right = read_product(depth);
      int64_t result = 0;
      const bool overflows = !right || (adds ? __builtin_add_overflow(*left, *right, &result)
                                             : __builtin_sub_overflow(*left, *right, &result));
      left = overflows ? Value() : Value(result);
    }
    return left;
  }

  Value read_product(int depth) {
    Value left = read_factor(depth);
    while (left && (next() == '*' || next() == '/' || next() == '%')) {
      const char sign = text_[at_++];
      const Value right = read_factor(depth);
      int64_t result = 0;
      if (!right || (sign != '*' && *right <= 0)) return std::nullopt;
      if (sign == '*' && __builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      if (sign == '/') result = *left / *right;
      if (sign == '%') result = *left % *right;
      left = result;
    }
    return left;
  }

  Value read_factor(int depth) {
    constexpr int kDeepestSum = 100;
    if (next() == '(' && depth < kDeepestSum) {
      ++at_;
      const Value inner = read_sum(depth + 1);
      if (next() != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    std::size_t begin = at_;
    if (next() == '$') begin = ++at_;
    const bool in_braces = begin > 0 && next() == '{' && text_[begin - 1] == '$';
    if (in_braces) begin = ++at_;
    while (at_ < text_.size() && is_variable_letter(text_[at_])) ++at_;
    const string_view name = text_.substr(begin, at_ - begin);
    if (in_braces) {
      if (next() != '}') return std::nullopt;
      ++at_;
    }
    return number_of(name);
  }

  Value number_of(string_view name) const {
    std::string text(name);
    if (const auto found = variables_.find(text); found != variables_.end()) {
      text = found->second.empty() ? "" : found->second.front();
    }
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return number;
  }

  string_view text_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
};

}  // namespace

std::string without_marks(const std::string& text) {
  std::string plain = text;
  std::erase_if(plain, [](char c) { return c == kUnknownBegins || c == kUnknownEnds; });
  return plain;
}

bool has_marks(const std::string& text) { return text.find(kUnknownBegins) != text.npos; }

std::string known_part(const std::string& text) {
  std::string known;
  bool is_known = true;
  for (const char letter : text) {
    if (letter == kUnknownBegins) is_known = false;
    if (is_known) known += letter;
    if (letter == kUnknownEnds) is_known = true;
  }
  return known;
}

void ShellExpansion::count(std::size_t bytes) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  bytes_ += bytes;
  if (bytes_ <= kMostBytes) return;
  throw estimator::UserError({.what = origin_ + " makes too much text of its variables",
                              .where = fmt::format("more than {} bytes", kMostBytes),
                              .help = "write its arguments in one command"});
}

void ShellExpansion::add_variable(const std::string& name,
                                  bool all,
                                  bool is_quoted,
                                  string_view written,
                                  std::vector<Piece>& pieces) {
  const auto found = variables_.find(name);
  if (found == variables_.end()) {
    if (!all && name != "@" && name != "*") pieces.push_back({unknown(written), true});
    return;
  }
  const std::vector<std::string>& items = found->second;
  for (std::size_t i = 0; i < (all ? items.size() : std::min<std::size_t>(items.size(), 1)); ++i) {
    count(items[i].size());
    if (i > 0 && !is_quoted) pieces.push_back({" ", false});
    pieces.push_back({items[i], is_quoted, i > 0});
  }
}

/// What stands in ${ ... }.
void ShellExpansion::add_braces(string_view inner, bool is_quoted, std::vector<Piece>& pieces) {
  const std::string written = fmt::format("${{{}}}", inner);
  const bool asks_length = inner.starts_with('#') && inner.size() > 1;
  if (asks_length) inner.remove_prefix(1);
  const std::string name(inner.substr(0, name_length(inner)));
  string_view rest = inner.substr(name.size());
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) rest.remove_prefix(3);
  const auto found = variables_.find(name);
  const bool is_set = found != variables_.end();
  const std::string value = is_set && !found->second.empty() ? found->second.front() : "";
  if (asks_length) {
    const std::size_t length = all ? (is_set ? found->second.size() : 0) : value.size();
    pieces.push_back({std::to_string(length), true});
    return;
  }
  if (rest.empty()) return add_variable(name, all, is_quoted, written, pieces);
  const bool empty_counts = rest.starts_with(':');
  const string_view operation = rest.substr(empty_counts ? 1 : 0);
  const char sign = operation.empty() ? '\0' : operation[0];
  const bool has_value = is_set && !(empty_counts && known_part(value).empty());
  if (sign == '-' || sign == '=' || sign == '+') {
    if (has_value != (sign == '+')) {
      if (sign != '+') add_variable(name, all, is_quoted, written, pieces);
      return;
    }
    std::vector<Piece> other;
    add_pieces(operation.substr(1), is_quoted, other);
    if (sign == '=') {
      std::string text;
      for (const Piece& piece : other) text += piece.text;
      variables_[name] = {text};
    }
    pieces.insert(pieces.end(), other.begin(), other.end());
    return;
  }
  if (is_set && rest == "^^") {
    pieces.push_back({changed_case(value, std::toupper), is_quoted});
  } else if (is_set && rest == ",,") {
    pieces.push_back({changed_case(value, std::tolower), is_quoted});
  } else if (is_set && (rest[0] == '%' || rest[0] == '#')) {
    const bool longest = rest.size() > 1 && rest[1] == rest[0];
    const std::string pattern = word(rest.substr(longest ? 2 : 1));
    constexpr std::size_t kLongestCut = 128;  // each end is compared with the pattern
    count(std::min(value.size(), kLongestCut) * (value.size() + pattern.size()));
    pieces.push_back({value.size() > kLongestCut ? unknown(written)
                                                 : cut(value, rest[0] == '%', longest, pattern),
                      is_quoted});
  } else {
    pieces.push_back({unknown(written), true});
  }
}

/// `raw` begins with '$'.
void ShellExpansion::add_expansion(string_view raw, bool is_quoted, std::vector<Piece>& pieces) {
  if (raw.starts_with("$((") && raw.ends_with("))")) {
    const auto number = sum(raw.substr(3, raw.size() - 5));
    pieces.push_back({number ? std::to_string(*number) : unknown(raw), true});
  } else if (raw.starts_with("$(")) {
    pieces.push_back({unknown(raw), true});
  } else if (raw.starts_with("${")) {
    add_braces(raw.substr(2, raw.size() - 2 - (raw.ends_with('}') ? 1 : 0)), is_quoted, pieces);
  } else {
    const std::string name(raw.substr(1));
    add_variable(name, name == "@" || name == "*", is_quoted, raw, pieces);
  }
}

void ShellExpansion::add_pieces(string_view raw, bool is_quoted, std::vector<Piece>& pieces) {
  constexpr int kDeepestExpansion = 32;
  count(raw.size());
  if (++depth_ > kDeepestExpansion) {
    pieces.push_back({unknown(raw), true});
    --depth_;
    return;
  }
  for (std::size_t at = 0; at < raw.size();) {
    const char letter = raw[at];
    std::size_t end = at + 1;
    if (letter == '\'' && !is_quoted) {
      end = end_of_shell_part(raw, at);
      pieces.push_back({std::string(raw.substr(at + 1, end - at - 2)), true});
    } else if (letter == '"' && !is_quoted) {
      end = end_of_shell_part(raw, at);
      const bool closed = end - at >= 2 && raw[end - 1] == '"';
      const string_view inner = raw.substr(at + 1, end - at - (closed ? 2 : 1));
      if (inner.empty()) pieces.push_back({"", true});  // a word of its own
      add_pieces(inner, true, pieces);
    } else if (letter == '\\' && at + 1 < raw.size()) {
      end = at + 2;
      const bool is_kept =
          is_quoted && string_view("$`\"\\\n").find(raw[at + 1]) == string_view::npos;
      if (raw[at + 1] != '\n') {
        pieces.push_back({std::string(raw.substr(at + (is_kept ? 0 : 1), is_kept ? 2 : 1)), true});
      }
    } else if (letter == '`') {
      end = end_of_shell_part(raw, at);
      pieces.push_back({unknown(raw.substr(at, end - at)), true});
    } else if (letter == '$' && at + 1 < raw.size()) {
      end = end_of_shell_part(raw, at);
      if (end == at + 1) end += name_length(raw.substr(at + 1));
      if (end == at + 1) {
        pieces.push_back({"$", true});
      } else {
        add_expansion(raw.substr(at, end - at), is_quoted, pieces);
      }
    } else {
      end = std::min(raw.find_first_of("'\"\\`$", at + 1), raw.size());
      pieces.push_back({std::string(raw.substr(at, end - at)), true});
    }
    at = end;
  }
  --depth_;
}

std::vector<std::string> ShellExpansion::words(string_view raw) {
  std::vector<Piece> pieces;
  add_pieces(raw, false, pieces);
  std::vector<std::string> words;
  bool in_word = false;
  const auto current = [&]() -> std::string& {
    if (!in_word) words.emplace_back();
    in_word = true;
    return words.back();
  };
  for (const Piece& piece : pieces) {
    if (piece.begins_word) in_word = false;
    if (piece.is_quoted) {
      current() += piece.text;
      continue;
    }
    for (const char letter : piece.text) {
      if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
        in_word = false;
      } else {
        current() += letter;
      }
    }
  }
  count(16 * words.size());
  return words;
}

std::string ShellExpansion::word(string_view raw) {
  std::vector<Piece> pieces;
  add_pieces(raw, false, pieces);
  std::string text;
  for (const Piece& piece : pieces) {
    if (piece.begins_word) text += ' ';
    text += piece.text;
  }
  return text;
}

std::string ShellExpansion::known_word(string_view raw) { return known_part(word(raw)); }

std::optional<int64_t> ShellExpansion::sum(string_view text) {
  return Sum(text, variables_).value();
}

}  // namespace sim
