#include "sim/cli/values/layer_pattern.h"

#include <fmt/format.h>

#include <cctype>

#include "estimator/base/fields.h"

namespace sim {
namespace {

constexpr std::size_t kMostLayers = 100'000;         // layers of a pattern, and of each part of it
constexpr std::size_t kMostWork = 10 * kMostLayers;  // layers that its parts write on the way
constexpr int kDeepestPart = 64;

/// sum = product {"+" product};  product = list {"*" number};  list = "(" sum ")" | "[" numbers "]"
class PatternParser {
 public:
  PatternParser(const std::string& text, const std::string& flag) : text_(text), flag_(flag) {}

  std::vector<int64_t> parse() {
    const bool is_list = peek() == '(' || peek() == '[';
    std::vector<int64_t> pattern = is_list ? sum() : numbers();
    if (peek() != kEnd || pattern.empty()) fail();
    return pattern;
  }

 private:
  static constexpr char kEnd = '\0';

  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : kEnd;
  }

  bool take(char letter) {
    if (peek() != letter) return false;
    ++at_;
    return true;
  }

  void expect(char letter) {
    if (!take(letter)) fail();
  }

  int64_t number() {
    if (std::isdigit(static_cast<unsigned char>(peek())) == 0) fail();
    std::size_t length = 0;
    constexpr std::size_t kMostDigits = 6;
    const std::string digits = text_.substr(at_, kMostDigits);
    const int64_t value = std::stoll(digits, &length);
    at_ += length;
    return value;
  }

  std::vector<int64_t> numbers() {
    std::vector<int64_t> all{number()};
    while (take(',')) all.push_back(number());
    count(all.size(), all.size());
    return all;
  }

  std::vector<int64_t> list() {
    if (take('(')) {
      if (++depth_ > kDeepestPart) fail();
      std::vector<int64_t> inner = sum();
      expect(')');
      --depth_;
      return inner;
    }
    expect('[');
    std::vector<int64_t> inner = numbers();
    expect(']');
    return inner;
  }

  std::vector<int64_t> product() {
    std::vector<int64_t> result = list();
    while (take('*')) {
      const std::vector<int64_t> once = result;
      const auto times = static_cast<std::size_t>(number());
      count(once.size() * times, once.size() * times);
      result.clear();
      for (std::size_t i = 0; i < times; ++i) result.insert(result.end(), once.begin(), once.end());
    }
    return result;
  }

  std::vector<int64_t> sum() {
    std::vector<int64_t> result = product();
    while (take('+')) {
      const std::vector<int64_t> more = product();
      count(more.size(), result.size() + more.size());
      result.insert(result.end(), more.begin(), more.end());
    }
    return result;
  }

  /// Bounds the memory and the time: a short text can stand for a pattern without end.
  void count(std::size_t written, std::size_t length) {
    work_ += written;
    if (length > kMostLayers || work_ > kMostWork) fail();
  }

  [[noreturn]] void fail() const {
    throw estimator::UserError({.what = "a pattern of layers is not understood",
                                .where = fmt::format("{} = {}", flag_, estimator::shown(text_)),
                                .help = "write whole numbers with commas, or as Python does: "
                                        "\"([0]*3+[1]*58)\""});
  }

  const std::string& text_;
  const std::string& flag_;
  std::size_t at_ = 0;
  std::size_t work_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<int64_t> parse_layer_pattern(const std::string& text, const std::string& flag) {
  return PatternParser(text, flag).parse();
}

}  // namespace sim
