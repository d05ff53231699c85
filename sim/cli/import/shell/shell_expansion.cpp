#include "sim/cli/import/shell/shell_expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "estimator/base/errors.h"
#include "estimator/base/glob.h"
#include "estimator/base/text.h"
#include "sim/cli/import/shell/shell_sum.h"
#include "sim/cli/import/shell/shell_tokens.h"

namespace sim {
namespace {

using std::string_view;

std::size_t name_length(string_view text) {
  if (!text.empty() && string_view("@*#?$!-").find(text[0]) != string_view::npos) return 1;
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) return 1;
  const auto end = std::find_if_not(text.begin(), text.end(), is_shell_name_letter);
  return static_cast<std::size_t>(end - text.begin());
}

/// Braces hold all digits of ${10}.
std::size_t braced_name_length(string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 ? digits : name_length(text);
}

/// What a shell knows of itself, which nobody can tell from a script.
bool is_state_of_shell(string_view name) {
  return name.size() == 1 && string_view("#?$!-").find(name[0]) != string_view::npos;
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
    if (!estimator::matches_glob(whole.substr(begin, length), pattern)) continue;
    std::string rest(from_end ? whole.substr(0, begin) : whole.substr(length));
    return estimator::find_non_utf8(rest) == rest.npos ? rest : text;
  }
  return text;
}

bool begins_undecided(char letter) {
  return letter == kUndecidedBegins || letter == kArgumentsBegin;
}
bool begins_mark(char letter) { return letter == kUnknownBegins || begins_undecided(letter); }

std::string marked(char mark, string_view written) {
  return fmt::format("{}{}{}", mark, without_marks(std::string(written)), kUnknownEnds);
}

/// "$1", which nobody knows unless the arguments of the script or the function are known.
bool is_positional(const std::string& name) {
  return !name.empty() && name != "0" && name.find_first_not_of("0123456789") == name.npos;
}

std::string unknown(string_view written) { return marked(kUnknownBegins, written); }

/// Without the marked parts whose mark is one that `is_left_out` holds for.
template <class IsLeftOut>
std::string without_parts(const std::string& text, IsLeftOut is_left_out) {
  std::string kept;
  bool is_kept = true;
  for (const char letter : text) {
    if (is_left_out(letter)) is_kept = false;
    if (is_kept) kept += letter;
    if (letter == kUnknownEnds) is_kept = true;
  }
  return kept;
}

}  // namespace

std::string without_marks(const std::string& text) {
  std::string plain = text;
  std::erase_if(plain, [](char c) { return begins_mark(c) || c == kUnknownEnds; });
  return plain;
}

bool has_marks(const std::string& text) {
  return std::any_of(text.begin(), text.end(), begins_mark);
}

bool is_undecided(const std::string& text) {
  return std::any_of(text.begin(), text.end(), begins_undecided);
}

std::string undecided(string_view written) { return marked(kUndecidedBegins, written); }
std::string undecided_arguments(string_view written) { return marked(kArgumentsBegin, written); }

bool has_argument(string_view text) {
  if (text.find(kArgumentsBegin) != string_view::npos) return true;
  constexpr string_view kBefore = " \t\r\n\"'";
  for (std::size_t at = 0; (at = text.find('-', at)) != string_view::npos; ++at) {
    if (at > 0 && kBefore.find(text[at - 1]) == string_view::npos) continue;
    const std::size_t name = std::min(text.find_first_not_of('-', at), text.size() - 1);
    if (std::isalpha(static_cast<unsigned char>(text[name])) != 0) return true;
  }
  return false;
}

ShellWord marked_word(const std::string& text, int line) {
  const bool is_open = is_undecided(text) && known_part(text).empty();
  return {.text = without_marks(text),
          .line = line,
          .is_unknown = has_marks(text),
          .is_open = is_open,
          .holds_arguments = is_open && text.find(kArgumentsBegin) != text.npos};
}

std::vector<std::string> divided_outside_marks(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;
  bool in_mark = false;
  for (const char letter : text) {
    in_mark = begins_mark(letter) || (in_mark && letter != kUnknownEnds);
    const bool divides = !in_mark && std::isspace(static_cast<unsigned char>(letter)) != 0;
    if (!divides && !in_word) words.emplace_back();
    if (!divides) words.back() += letter;
    in_word = !divides;
  }
  return words;
}

std::string known_part(const std::string& text) { return without_parts(text, begins_mark); }

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
    if (is_state_of_shell(name) || (is_positional(name) && !variables_.contains("#"))) {
      pieces.push_back({undecided(written), true});
    } else if (!all && name != "@" && name != "*") {
      pieces.push_back({unknown(written), true});
    }
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
  const std::string name(inner.substr(0, braced_name_length(inner)));
  string_view rest = inner.substr(name.size());
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) rest.remove_prefix(3);
  const auto found = variables_.find(name);
  const bool is_set = found != variables_.end();
  const std::string value = is_set && !found->second.empty() ? found->second.front() : "";
  if (asks_length) {
    const bool is_open =
        is_set ? std::any_of(found->second.begin(), found->second.end(), has_marks) : name == "@";
    if (is_open) return pieces.push_back({undecided(written), true});
    const std::size_t length = all ? (is_set ? found->second.size() : 0) : value.size();
    pieces.push_back({std::to_string(length), true});
    return;
  }
  if (rest.empty()) return add_variable(name, all, is_quoted, written, pieces);
  if (is_undecided(value)) {
    return pieces.push_back(
        {has_argument(value) ? undecided_arguments(written) : undecided(written), true});
  }
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
    const bool is_argument = is_positional(name) && !variables_.contains("#");
    pieces.push_back({is_argument ? undecided(written) : unknown(written), true});
  }
}

/// `scontrol show hostnames` says the machines of a job of Slurm, whose number #SBATCH gives.
bool ShellExpansion::add_hosts(string_view raw, std::vector<Piece>& pieces) {
  constexpr std::size_t kMostHosts = 100'000;
  const auto count = number("SLURM_NNODES");
  if (raw.find("scontrol show hostname") == raw.npos || !count || *count < 1) return false;
  const auto hosts = std::min(static_cast<std::size_t>(*count), kMostHosts);
  const std::size_t pipe = raw.find('|');
  if (pipe != raw.npos) {
    const bool counts = raw.find("wc -l", pipe) != raw.npos;
    if (counts) pieces.push_back({std::to_string(hosts), true});
    return counts;
  }
  for (std::size_t i = 0; i < hosts; ++i) {
    pieces.push_back({fmt::format("{}host-{}", i == 0 ? "" : " ", i + 1), false});
  }
  return true;
}

/// `raw` begins with '$'.
void ShellExpansion::add_expansion(string_view raw, bool is_quoted, std::vector<Piece>& pieces) {
  if (raw.starts_with("$((") && raw.ends_with("))")) {
    const auto number = sum(raw.substr(3, raw.size() - 5));
    pieces.push_back({number ? std::to_string(*number) : undecided(raw), true});
  } else if (raw.starts_with("$(")) {
    if (!add_hosts(raw, pieces)) pieces.push_back({undecided(raw), true});
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
      pieces.push_back({undecided(raw.substr(at, end - at)), true});
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
    bool in_mark = false;
    for (const char letter : piece.text) {
      in_mark = begins_mark(letter) || (in_mark && letter != kUnknownEnds);
      if (!in_mark && std::isspace(static_cast<unsigned char>(letter)) != 0) {
        in_word = false;
      } else {
        current() += letter;
      }
    }
  }
  count(16 * words.size());
  return words;
}

std::string ShellExpansion::joined(string_view raw, bool is_quoted) {
  std::vector<Piece> pieces;
  add_pieces(raw, is_quoted, pieces);
  std::string text;
  for (const Piece& piece : pieces) {
    if (piece.begins_word) text += ' ';
    text += piece.text;
  }
  return text;
}

std::string ShellExpansion::word(string_view raw) { return joined(raw, false); }

std::string ShellExpansion::tested_word(string_view raw) {
  return without_parts(word(raw), [](char letter) { return letter == kUnknownBegins; });
}

std::string ShellExpansion::sum_text(string_view raw) { return joined(raw, true); }

std::optional<int64_t> ShellExpansion::number(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  const std::string text = found->second.empty() ? "" : found->second.front();
  return text.empty() ? 0 : shell_number(text);
}

std::optional<int64_t> ShellExpansion::sum(string_view text) {
  const auto value = [this](const std::string& name) { return number(name); };
  return shell_sum(sum_text(text), {.value = value, .assign = {}});
}

}  // namespace sim
