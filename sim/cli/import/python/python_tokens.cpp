#include "sim/cli/import/python/python_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using TokenKind = PythonToken::Kind;

/// Longer signs first.
constexpr std::string_view kSigns[] = {
    "**=", "//=", ">>=", "<<=", "...", "!=", "->", "**", "//", ">>", "<<", "<=",
    ">=",  "==",  ":=",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@=",
    "(",   ")",   "[",   "]",   "{",   "}",  ",",  ":",  ".",  ";",  "@",  "=",
    "+",   "-",   "*",   "/",   "%",   "&",  "|",  "^",  "~",  "<",  ">"};

bool begins_name(unsigned char letter) {
  return std::isalpha(letter) != 0 || letter == '_' || letter >= 0x80;
}
bool is_of_name(unsigned char letter) { return begins_name(letter) || std::isdigit(letter) != 0; }

class Tokenizer {
 public:
  Tokenizer(const std::string& text, const std::string& origin) : text_(text), origin_(origin) {}

  std::vector<PythonToken> tokens() && {
    while (at_ < text_.size()) {
      if (begins_line_ && open_brackets_ == 0) read_indent();
      if (at_ < text_.size()) read_one();
    }
    end_line();
    while (indents_.size() > 1) pop_indent();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { refuse_python(origin_, line_, what); }

  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool starts_with(std::string_view word) const {
    return std::string_view(text_).substr(at_).starts_with(word);
  }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void end_line() {
    const bool is_empty = tokens_.empty() || tokens_.back().kind == TokenKind::kNewLine ||
                          tokens_.back().kind == TokenKind::kIndent ||
                          tokens_.back().kind == TokenKind::kDedent;
    if (!is_empty) add(TokenKind::kNewLine, "");
  }

  void pop_indent() {
    indents_.pop_back();
    add(TokenKind::kDedent, "");
  }

  /// The blanks before the first word of a line; lines without words have no indent.
  void read_indent() {
    constexpr std::size_t kTab = 8;
    std::size_t width = 0;
    for (; now() == ' ' || now() == '\t'; ++at_)
      width = now() == ' ' ? width + 1 : (width / kTab + 1) * kTab;
    if (now() == '#' || now() == '\n' || now() == '\r' || at_ >= text_.size()) return;
    begins_line_ = false;
    if (width > indents_.back()) {
      indents_.push_back(width);
      return add(TokenKind::kIndent, "");
    }
    while (width < indents_.back()) pop_indent();
    if (width != indents_.back()) refuse("the indent is that of no line before it");
  }

  void read_one() {
    const auto letter = static_cast<unsigned char>(now());
    if (letter == '\n') return read_line_end();
    if (letter == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (letter == '\\') {
      read_continuation();
    } else if (std::isspace(letter) != 0) {
      ++at_;
    } else if (letter == '"' || letter == '\'') {
      read_text("");
    } else if (begins_name(letter)) {
      read_name();
    } else if (std::isdigit(letter) != 0 || (letter == '.' && is_digit_at(at_ + 1))) {
      read_number();
    } else {
      read_sign();
    }
  }

  bool is_digit_at(std::size_t at) const {
    return at < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at])) != 0;
  }

  void read_line_end() {
    begins_line_ = open_brackets_ == 0;
    if (begins_line_) end_line();
    ++at_;
    ++line_;
  }

  void read_continuation() {
    at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
    ++line_;
  }

  void read_name() {
    const std::size_t begin = at_;
    while (is_of_name(static_cast<unsigned char>(now()))) ++at_;
    std::string name = text_.substr(begin, at_ - begin);
    constexpr std::size_t kLongestPrefix = 2;
    const bool is_prefix = name.size() <= kLongestPrefix && (now() == '"' || now() == '\'');
    if (is_prefix) return read_text(name);
    add(TokenKind::kName, std::move(name));
  }

  void read_number() {
    const std::size_t begin = at_;
    const auto is_exponent_sign = [&] {
      const char before = text_[at_ - 1];
      return at_ > begin && (now() == '-' || now() == '+') && (before == 'e' || before == 'E');
    };
    while (is_of_name(static_cast<unsigned char>(now())) || now() == '.' || is_exponent_sign())
      ++at_;
    std::string number = text_.substr(begin, at_ - begin);
    std::erase(number, '_');
    add(TokenKind::kNumber, std::move(number));
  }

  void read_sign() {
    const auto* sign = std::find_if(std::begin(kSigns),
                                    std::end(kSigns),
                                    [&](std::string_view word) { return starts_with(word); });
    if (sign == std::end(kSigns)) refuse(fmt::format("'{}' is no sign of Python", now()));
    if (*sign == "(" || *sign == "[" || *sign == "{") ++open_brackets_;
    if (*sign == ")" || *sign == "]" || *sign == "}")
      open_brackets_ = std::max(0, open_brackets_ - 1);
    add(TokenKind::kSign, std::string(*sign));
    at_ += sign->size();
  }

  /// A string with its prefix: r keeps backslashes, and what f has in braces is not evaluated.
  void read_text(const std::string& prefix) {
    const auto has = [&](char small) {
      return std::any_of(
          prefix.begin(), prefix.end(), [&](unsigned char c) { return std::tolower(c) == small; });
    };
    const int begin_line = line_;
    const bool is_long = starts_with("\"\"\"") || starts_with("'''");
    const std::string quote = text_.substr(at_, is_long ? 3 : 1);
    at_ += quote.size();
    std::string said;
    while (!starts_with(quote)) said += read_letter(has('r'), is_long);
    at_ += quote.size();
    tokens_.push_back({has('f') || has('b') ? TokenKind::kTemplate : TokenKind::kText,
                       std::move(said),
                       begin_line});
  }

  std::string read_letter(bool is_raw, bool may_have_lines) {
    if (at_ >= text_.size() || (now() == '\n' && !may_have_lines)) refuse("a string has no end");
    if (now() == '\n') ++line_;
    if (now() != '\\' || at_ + 1 >= text_.size()) return {text_[at_++]};
    const char escaped = text_[at_ + 1];
    at_ += 2;
    if (escaped == '\n') ++line_;
    if (is_raw) return {'\\', escaped};
    return unescaped(escaped);
  }

  static std::string unescaped(char letter) {
    if (letter == '\n') return "";
    if (letter == 'n') return "\n";
    if (letter == 't') return "\t";
    const bool is_itself = letter == '\\' || letter == '\'' || letter == '"';
    return is_itself ? std::string{letter} : std::string{'\\', letter};
  }

  const std::string& text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  int line_ = 1;
  int open_brackets_ = 0;
  bool begins_line_ = true;
  std::vector<std::size_t> indents_ = {0};
  std::vector<PythonToken> tokens_;
};

}  // namespace

void refuse_python(const std::string& origin, int line, const std::string& what) {
  throw estimator::UserError({.what = origin + " is no Python that can be read",
                              .where = fmt::format("line {}: {}", line, what),
                              .help = "give a file that Python itself accepts"});
}

std::vector<PythonToken> python_tokens(const std::string& text, const std::string& origin) {
  return Tokenizer(text, origin).tokens();
}

}  // namespace sim
