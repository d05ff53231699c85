#include "sim/cli/import/shell/shell_test.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "estimator/base/glob.h"
#include "sim/cli/import/shell/shell_sum.h"
#include "sim/cli/import/shell/shell_tokens.h"

namespace sim {
namespace {

using std::string_view;
using Verdict = std::optional<bool>;

struct TestWord {
  std::string text;  ///< as ShellExpansion::tested_word() gives it
  bool may_be_sign;
};

Verdict denied(Verdict verdict) { return verdict ? Verdict(!*verdict) : verdict; }
Verdict both(Verdict left, Verdict right) {
  if (left == Verdict(false) || right == Verdict(false)) return false;
  return left && right ? Verdict(true) : Verdict();
}
Verdict either(Verdict left, Verdict right) { return denied(both(denied(left), denied(right))); }

struct NumberSign {
  string_view sign;
  bool (*holds)(int64_t left, int64_t right);
};
constexpr auto kNumberSigns = std::to_array<NumberSign>({
    {"-eq", [](int64_t a, int64_t b) { return a == b; }},
    {"-ne", [](int64_t a, int64_t b) { return a != b; }},
    {"-gt", [](int64_t a, int64_t b) { return a > b; }},
    {"-ge", [](int64_t a, int64_t b) { return a >= b; }},
    {"-lt", [](int64_t a, int64_t b) { return a < b; }},
    {"-le", [](int64_t a, int64_t b) { return a <= b; }},
});
const NumberSign* find_number_sign(string_view text) {
  const auto found = std::find_if(kNumberSigns.begin(),
                                  kNumberSigns.end(),
                                  [&](const NumberSign& sign) { return sign.sign == text; });
  return found == kNumberSigns.end() ? nullptr : &*found;
}

constexpr std::array<string_view, 6> kTextSigns = {"=", "==", "!=", "<", ">", "=~"};
/// Those of files and of the terminal, which nobody knows here, among others.
bool is_question(string_view text) {
  return text.size() == 2 && text[0] == '-' &&
         std::isalpha(static_cast<unsigned char>(text[1])) != 0;
}

/// Reads tests in brackets, with `and`, `or` and `not`, each of which binds stronger than the one
/// before it.
class Test {
 public:
  Test(std::vector<TestWord> words, bool is_double, TestSubject subject)
      : words_(std::move(words)), is_double_(is_double), subject_(subject) {}

  Verdict value() {
    if (words_.empty()) return false;
    const Verdict verdict = read_or(0);
    return at_ == words_.size() ? verdict : Verdict();
  }

 private:
  bool at_sign(std::size_t at, string_view sign) const {
    return at < words_.size() && words_[at].may_be_sign && words_[at].text == sign;
  }
  bool skips(string_view sign) {
    const bool is_it = at_sign(at_, sign);
    if (is_it) ++at_;
    return is_it;
  }

  Verdict read_or(int depth) {
    Verdict left = read_and(depth);
    while (skips(is_double_ ? "||" : "-o")) left = either(left, read_and(depth));
    return left;
  }

  Verdict read_and(int depth) {
    Verdict left = read_not(depth);
    while (skips(is_double_ ? "&&" : "-a")) left = both(left, read_not(depth));
    return left;
  }

  Verdict read_not(int depth) {
    constexpr int kDeepestTest = 100;
    if (depth > kDeepestTest || at_ >= words_.size()) return std::nullopt;
    if (is_comparison()) return read_comparison();
    if (skips("!")) return denied(read_not(depth + 1));
    if (!skips("(")) return read_question();
    const Verdict inner = read_or(depth + 1);
    return skips(")") ? inner : std::nullopt;
  }

  bool is_comparison() const {
    if (at_ + 2 >= words_.size() || !words_[at_ + 1].may_be_sign) return false;
    const string_view sign = words_[at_ + 1].text;
    return std::find(kTextSigns.begin(), kTextSigns.end(), sign) != kTextSigns.end() ||
           find_number_sign(sign) != nullptr;
  }

  Verdict read_comparison() {
    const std::string& left = words_[at_].text;
    const std::string& sign = words_[at_ + 1].text;
    const std::string& right = words_[at_ + 2].text;
    at_ += 3;
    if (has_marks(left) || has_marks(right) || sign == "=~") return std::nullopt;
    if (const NumberSign* numbers = find_number_sign(sign)) {
      return number_comparison(*numbers, left, right);
    }
    if (sign == "<") return left < right;
    if (sign == ">") return left > right;
    const bool is_same = is_double_ ? matches_shell_pattern(left, right) : left == right;
    return is_same == (sign != "!=");
  }

  /// [ has plain numbers, and fails with other texts; [[ has sums, in which nothing is 0.
  Verdict number_comparison(const NumberSign& sign,
                            const std::string& left,
                            const std::string& right) const {
    const bool is_empty = left.empty() || right.empty();
    if (!is_double_ && is_empty) return false;
    const auto a = number(left);
    const auto b = number(right);
    return a && b ? Verdict(sign.holds(*a, *b)) : Verdict();
  }

  std::optional<int64_t> number(const std::string& text) const {
    if (is_double_) return text.empty() ? 0 : subject_.expansion.sum(text);
    const std::size_t digit = std::min(text.find_first_not_of('0'), text.size() - 1);
    return shell_number(string_view(text).substr(digit));
  }

  /// -z TEXT and the like, or a text alone, which holds if it is not empty.
  Verdict read_question() {
    const bool asks = words_[at_].may_be_sign && is_question(words_[at_].text) &&
                      at_ + 1 < words_.size() && !at_sign(at_ + 1, is_double_ ? "&&" : "-a") &&
                      !at_sign(at_ + 1, is_double_ ? "||" : "-o");
    if (!asks) return is_not_empty(words_[at_++].text);
    const char question = words_[at_].text[1];
    const std::string& text = words_[at_ + 1].text;
    at_ += 2;
    if (question == 'n') return is_not_empty(text);
    if (question == 'z') return denied(is_not_empty(text));
    if (question == 'v') return is_set(text);
    const bool is_of_file = string_view("efrs").find(question) != string_view::npos;
    return is_of_file && is_script(text) ? Verdict(true) : Verdict();
  }

  static Verdict is_not_empty(const std::string& text) {
    return known_part(text).empty() && has_marks(text) ? Verdict() : Verdict(!text.empty());
  }

  Verdict is_set(const std::string& name) const {
    const auto found = subject_.variables.find(name);
    if (found == subject_.variables.end()) return has_marks(name) ? Verdict() : Verdict(false);
    const auto& items = found->second;
    return !items.empty() && is_undecided(items.front()) ? Verdict() : Verdict(true);
  }

  bool is_script(const std::string& path) const {
    return !has_marks(path) && path.ends_with(".sh") && subject_.find_script &&
           subject_.find_script(path).has_value();
  }

  std::vector<TestWord> words_;
  bool is_double_;
  TestSubject subject_;
  std::size_t at_ = 0;
};

constexpr string_view kBlanks = " \t\r\n";

/// The length of the sign of [[ ... ]] that begins here; 0 if it is a word.
std::size_t sign_length(string_view rest) {
  if (rest.starts_with("&&") || rest.starts_with("||")) return 2;
  return string_view("()<>").find(rest[0]) == string_view::npos ? 0 : 1;
}

std::size_t end_of_test_word(string_view text, std::size_t at) {
  while (at < text.size() && kBlanks.find(text[at]) == string_view::npos &&
         sign_length(text.substr(at)) == 0) {
    at = end_of_shell_part(text, at);
  }
  return std::min(at, text.size());
}

/// A pattern may have brackets of its own: !(a|b).
std::vector<string_view> divided(string_view text) {
  std::vector<string_view> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBlanks, at)) != text.npos;) {
    const std::size_t length = sign_length(text.substr(at));
    const std::size_t end = length > 0 ? at + length : end_of_test_word(text, at);
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace

std::optional<bool> double_bracket_holds(string_view text, TestSubject subject) {
  std::vector<TestWord> words;
  for (const string_view raw : divided(text)) {
    const bool is_plain = raw.find_first_of("'\"\\`$") == raw.npos;
    words.push_back({subject.expansion.tested_word(raw), is_plain});
  }
  return Test(std::move(words), true, subject).value();
}

std::optional<bool> bracket_holds(const std::vector<std::string>& raw_words, TestSubject subject) {
  std::vector<TestWord> words;
  words.reserve(raw_words.size());
  for (const std::string& raw : raw_words) {
    words.push_back({subject.expansion.tested_word(raw), true});
  }
  return Test(std::move(words), false, subject).value();
}

bool matches_shell_pattern(const std::string& text, const std::string& pattern) {
  constexpr std::size_t kLongestProduct = 1 << 14;
  const bool is_short = text.size() * pattern.size() <= kLongestProduct;
  return is_short ? estimator::matches_glob(text, pattern) : text == pattern;
}

}  // namespace sim
