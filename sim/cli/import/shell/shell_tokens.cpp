#include "sim/cli/import/shell/shell_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "estimator/base/errors.h"
#include "sim/cli/import/shell/shell_expansion.h"

namespace sim {
namespace {

using Kind = ShellToken::Kind;
using std::string_view;

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

/// "NAME=" or "NAME+="
bool begins_array(string_view word) {
  if (word.empty() || word.back() != '=') return false;
  word.remove_suffix(word.ends_with("+=") ? 2 : 1);
  return !word.empty() && std::all_of(word.begin(), word.end(), is_shell_name_letter);
}

/// Quotes and brackets in each other beyond this are read as plain letters.
constexpr int kDeepestQuotes = 32;

std::size_t end_of_brackets(string_view text, std::size_t at, int depth);

/// Behind the closing quote; the end of the text if there is none.
std::size_t end_of_quotes(string_view text, std::size_t at, int depth) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote) {
    const bool expands = quote == '"' && text[at] == '$' && at + 1 < text.size() &&
                         (text[at + 1] == '(' || text[at + 1] == '{');
    if (expands && depth < kDeepestQuotes) {
      at = end_of_brackets(text, at + 1, depth + 1);
    } else {
      at += text[at] == '\\' && quote != '\'' ? 2 : 1;
    }
  }
  return std::min(at + 1, text.size());
}

/// Behind the bracket that closes the one at `at`; quotes and escapes count as one.
std::size_t end_of_brackets(string_view text, std::size_t at, int depth) {
  const char open = text[at];
  const char close = open == '(' ? ')' : '}';
  int open_brackets = 0;
  while (at < text.size()) {
    const char letter = text[at];
    if (letter == '\\') {
      at += 2;
    } else if ((letter == '\'' || letter == '"' || letter == '`') && depth < kDeepestQuotes) {
      at = end_of_quotes(text, at, depth + 1);
    } else {
      if (letter == open) ++open_brackets;
      if (letter == close && --open_brackets == 0) return at + 1;
      ++at;
    }
  }
  return text.size();
}

class ShellTokenizer {
 public:
  ShellTokenizer(string_view text, int line, const std::string& origin)
      : text_(text), line_(line), origin_(origin) {}

  std::vector<ShellToken> read_all() {
    std::vector<ShellToken> tokens;
    while (at_ < text_.size()) read_one(tokens);
    return tokens;
  }

 private:
  struct Heredoc {
    std::string delimiter;
    bool strips_tabs;
  };

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool skips(string_view piece) {
    if (!text_.substr(at_).starts_with(piece)) return false;
    at_ += piece.size();
    return true;
  }

  void read_one(std::vector<ShellToken>& tokens) {
    const char letter = peek();
    if (is_blank(letter)) {
      ++at_;
    } else if (skips("\\\n") || skips("\\\r\n")) {
      ++line_;
    } else if (letter == '#') {
      read_comment(tokens);
    } else if (letter == '\n') {
      add(tokens, Kind::kOperator, "\n");
      ++at_;
      ++line_;
      read_heredocs(tokens);
    } else if (read_test(tokens) || read_sum(tokens)) {
      return;
    } else if (placeholder_length() > 0) {
      read_word(tokens);
    } else if (letter == '<' || letter == '>' || text_.substr(at_).starts_with("&>")) {
      read_redirection();
    } else if (string_view(";&|()").find(letter) != string_view::npos) {
      const bool twice = letter != '(' && letter != ')' && peek(1) == letter;
      add(tokens, Kind::kOperator, std::string(twice ? 2 : 1, letter));
      at_ += twice ? 2 : 1;
    } else {
      read_word(tokens);
    }
  }

  /// Whether a command can begin behind these tokens.
  bool begins_command(const std::vector<ShellToken>& tokens) const {
    if (depth_ > 0) return false;  // an item of an array
    if (tokens.empty() || tokens.back().kind != Kind::kWord) return true;
    static const std::set<string_view> kBefore = {
        "if", "elif", "while", "until", "then", "else", "do", "!", "{", "time"};
    return kBefore.contains(tokens.back().text);
  }

  /// [[ ... ]], in which && and > are no operators.
  bool read_test(std::vector<ShellToken>& tokens) {
    if (!text_.substr(at_).starts_with("[[") || !(is_blank(peek(2)) || peek(2) == '\n'))
      return false;
    if (!begins_command(tokens)) return false;
    const std::size_t begin = at_ + 2;
    std::size_t end = begin;
    while (end < text_.size() && !closes_test(end)) end = end_of_shell_part(text_, end);
    end = std::min(end, text_.size());
    add_enclosed(tokens, Kind::kTest, begin, end);
    return true;
  }
  bool closes_test(std::size_t at) const {
    const string_view before = text_.substr(at - 1, 1);
    const bool is_word = is_blank(before[0]) || before[0] == '\n';
    return is_word && text_.substr(at).starts_with("]]");
  }

  /// (( ... )), which is a sum if both brackets close together, and else two subshells.
  bool read_sum(std::vector<ShellToken>& tokens) {
    if (!text_.substr(at_).starts_with("((")) return false;
    const bool is_for = !tokens.empty() && tokens.back().is(Kind::kWord, "for");
    if (failed_sums_ == kMostFailedSums || (!is_for && !begins_command(tokens))) return false;
    const std::size_t end = end_of_brackets(text_, at_ + 1, 0);
    if (end >= text_.size() || text_[end] != ')') {
      ++failed_sums_;
      return false;
    }
    add_enclosed(tokens, Kind::kSum, at_ + 2, end - 1);
    return true;
  }

  /// The text from `begin` to `end`, behind which two closing letters stand.
  void add_enclosed(std::vector<ShellToken>& tokens,
                    Kind kind,
                    std::size_t begin,
                    std::size_t end) {
    add(tokens, kind, std::string(text_.substr(begin, end - begin)));
    line_ += static_cast<int>(std::count(text_.begin() + begin, text_.begin() + end, '\n'));
    at_ = std::min(end + 2, text_.size());
  }

  void add(std::vector<ShellToken>& tokens, Kind kind, std::string text) const {
    tokens.push_back({.kind = kind, .text = std::move(text), .line = line_, .items = {}});
  }

  void read_comment(std::vector<ShellToken>& tokens) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const string_view comment = text_.substr(at_, end - at_);
    constexpr string_view kDirective = "#SBATCH";
    if (comment.starts_with(kDirective)) {
      add(tokens, Kind::kDirective, std::string(comment.substr(kDirective.size())));
    }
    at_ = end;
  }

  /// The length of "<path to data>", which somebody is to replace; 0 where no such text begins.
  std::size_t placeholder_length() const {
    const string_view rest = text_.substr(at_);
    if (!rest.starts_with('<') || std::isalpha(static_cast<unsigned char>(peek(1))) == 0) return 0;
    const auto is_part = [](char letter) {
      return is_shell_name_letter(letter) || string_view(" ./-").find(letter) != string_view::npos;
    };
    const auto end = std::find_if_not(rest.begin() + 1, rest.end(), is_part);
    if (end == rest.end() || *end != '>' || *(end - 1) == ' ') return 0;
    const auto length = static_cast<std::size_t>(end - rest.begin()) + 1;
    const bool is_whole = length == rest.size() ||
                          string_view(" \t\r\n/;\"'").find(rest[length]) != string_view::npos;
    return is_whole ? length : 0;
  }

  /// As where a text in angle brackets was to be replaced, and more than one line is between them.
  void refuse_argument_as_file() const {
    if (peek() != '-' || (peek(1) != '-' && std::isalpha(static_cast<unsigned char>(peek(1))) == 0))
      return;
    const string_view rest = text_.substr(at_);
    const string_view argument = rest.substr(0, rest.find_first_of(" \t\r\n\\"));
    throw estimator::UserError(
        {.what = "a shell takes this argument for the name of a file behind < or >",
         .where = fmt::format("{}:{}: {}", origin_, line_, argument),
         .help = "replace the text in angle brackets before it, or put it into quotes"});
  }

  /// Its target is no word of the command, and neither are digits before it ("2>&1").
  void read_redirection() {
    const bool is_heredoc = text_.substr(at_).starts_with("<<") && peek(2) != '<';
    const bool strips_tabs = is_heredoc && peek(2) == '-';
    while (at_ < text_.size() && string_view("<>&|-").find(peek()) != string_view::npos) ++at_;
    if (!is_heredoc && text_[at_ - 1] == '-') return;  // >&- closes
    while (is_blank(peek()) || skips("\\\n")) at_ += is_blank(peek()) ? 1 : 0;
    if (!is_heredoc) refuse_argument_as_file();
    const std::size_t begin = at_;
    if (peek() == '(') at_ = end_of_brackets(text_, at_, 0);  // <(command)
    skip_word();
    if (!is_heredoc) return;
    std::string delimiter(text_.substr(begin, at_ - begin));
    std::erase_if(delimiter, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
    heredocs_.push_back({std::move(delimiter), strips_tabs});
  }

  void read_heredocs(std::vector<ShellToken>& tokens) {
    for (const Heredoc& heredoc : heredocs_) {
      std::string body;
      const int first_line = line_;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        while (heredoc.strips_tabs && line.starts_with('\t')) line.remove_prefix(1);
        if (line == heredoc.delimiter) break;
        body += line;
        body += '\n';
      }
      tokens.push_back(
          {.kind = Kind::kHeredoc, .text = std::move(body), .line = first_line, .items = {}});
      add(tokens, Kind::kOperator, "\n");
    }
    heredocs_.clear();
  }

  /// Moves behind the word that begins here, and counts its lines.
  void skip_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char letter = peek();
      if (const std::size_t length = placeholder_length(); length > 0) {
        at_ += length;
        continue;
      }
      if (is_blank(letter) || string_view("\n;&|()<>").find(letter) != string_view::npos) break;
      at_ = end_of_shell_part(text_, at_);
    }
    at_ = std::min(at_, text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + begin, text_.begin() + at_, '\n'));
  }

  void read_word(std::vector<ShellToken>& tokens) {
    const std::size_t begin = at_;
    const int first_line = line_;
    skip_word();
    const string_view written = text_.substr(begin, at_ - begin);
    const bool is_of_redirection =
        (peek() == '<' || peek() == '>') && written.find_first_not_of("0123456789") == written.npos;
    if (is_of_redirection && !written.empty()) return;
    std::string word = with_open_placeholders(written);
    if (begins_array(word) && peek() == '(') {
      tokens.push_back({Kind::kArray, std::move(word), first_line, read_items()});
    } else if (at_ == begin) {
      ++at_;  // what is no word and no operator
    } else {
      tokens.push_back({Kind::kWord, std::move(word), first_line, {}});
    }
  }

  /// Nobody knows what a text in angle brackets stands for.
  static std::string with_open_placeholders(string_view written) {
    std::string word(written);
    const bool has_one = written.find('<') != written.npos && written.find('\'') == written.npos &&
                         written.find('"') == written.npos;
    for (std::size_t at = 0; has_one && (at = word.find('<', at)) != word.npos; at += 2) {
      const std::size_t end = word.find('>', at);
      if (end == word.npos) break;
      word.insert(end + 1, 1, kUnknownEnds);
      word.insert(at, 1, kUnknownBegins);
    }
    return word;
  }

  std::vector<ShellToken> read_items() {
    constexpr int kDeepest = 16;
    if (++depth_ > kDeepest) {
      throw estimator::UserError({.what = origin_ + " is nested too deeply",
                                  .where = fmt::format("line {}", line_),
                                  .help = "write its arguments in one command"});
    }
    std::vector<ShellToken> items;
    ++at_;
    while (at_ < text_.size() && peek() != ')') {
      std::vector<ShellToken> read;
      read_one(read);
      for (ShellToken& token : read) {
        if (token.kind == Kind::kWord) items.push_back(std::move(token));
      }
    }
    if (at_ < text_.size()) ++at_;
    --depth_;
    return items;
  }

  string_view text_;
  std::size_t at_ = 0;
  int line_;
  int depth_ = 0;
  static constexpr int kMostFailedSums = 64;  ///< each of them reads the text to its end
  int failed_sums_ = 0;
  const std::string& origin_;
  std::vector<Heredoc> heredocs_;  ///< that begin on the next line
};

}  // namespace

bool is_shell_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

std::size_t end_of_shell_part(string_view text, std::size_t at) {
  const char letter = text[at];
  if (letter == '\\') return std::min(at + 2, text.size());
  if (letter == '\'' || letter == '"' || letter == '`') return end_of_quotes(text, at, 0);
  const bool expands = letter == '$' && at + 1 < text.size();
  if (expands && (text[at + 1] == '{' || text[at + 1] == '('))
    return end_of_brackets(text, at + 1, 0);
  return at + 1;
}

std::vector<ShellToken> shell_tokens(string_view text, int line, const std::string& origin) {
  return ShellTokenizer(text, line, origin).read_all();
}

}  // namespace sim
