#include "sim/cli/import/shell/shell_sum.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>

#include "sim/cli/import/shell/shell_expansion.h"
#include "sim/cli/import/shell/shell_tokens.h"

namespace sim {
namespace {

using std::string_view;
using Value = std::optional<int64_t>;

struct BinarySign {
  string_view sign;
  int binds;
  Value (*value)(int64_t left, int64_t right);
};

template <bool (*overflows)(int64_t, int64_t, int64_t*)>
Value checked(int64_t left, int64_t right) {
  int64_t result = 0;
  return overflows(left, right, &result) ? Value() : Value(result);
}
bool add(int64_t a, int64_t b, int64_t* sum) { return __builtin_add_overflow(a, b, sum); }
bool subtract(int64_t a, int64_t b, int64_t* rest) { return __builtin_sub_overflow(a, b, rest); }
bool multiply(int64_t a, int64_t b, int64_t* product) {
  return __builtin_mul_overflow(a, b, product);
}

bool divides(int64_t left, int64_t right) {
  return right != 0 && !(right == -1 && left == std::numeric_limits<int64_t>::min());
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 64) return std::nullopt;
  Value result = 1;
  for (; result && exponent > 0; --exponent) result = checked<multiply>(*result, base);
  return result;
}

Value shifted(int64_t left, int64_t right) {
  if (right < 0 || right > 62 || left < 0) return std::nullopt;
  return checked<multiply>(left, int64_t{1} << right);
}

/// Longer signs stand before those that they begin with.
constexpr auto kBinarySigns = std::to_array<BinarySign>({
    {"||", 1, [](int64_t a, int64_t b) { return Value(a != 0 || b != 0); }},
    {"&&", 2, [](int64_t a, int64_t b) { return Value(a != 0 && b != 0); }},
    {"==", 6, [](int64_t a, int64_t b) { return Value(a == b); }},
    {"!=", 6, [](int64_t a, int64_t b) { return Value(a != b); }},
    {"<=", 7, [](int64_t a, int64_t b) { return Value(a <= b); }},
    {">=", 7, [](int64_t a, int64_t b) { return Value(a >= b); }},
    {"<<", 8, shifted},
    {">>", 8, [](int64_t a, int64_t b) { return b < 0 || b > 62 ? Value() : Value(a >> b); }},
    {"**", 11, power},
    {"|", 3, [](int64_t a, int64_t b) { return Value(a | b); }},
    {"^", 4, [](int64_t a, int64_t b) { return Value(a ^ b); }},
    {"&", 5, [](int64_t a, int64_t b) { return Value(a & b); }},
    {"<", 7, [](int64_t a, int64_t b) { return Value(a < b); }},
    {">", 7, [](int64_t a, int64_t b) { return Value(a > b); }},
    {"+", 9, checked<add>},
    {"-", 9, checked<subtract>},
    {"*", 10, checked<multiply>},
    {"/", 10, [](int64_t a, int64_t b) { return divides(a, b) ? Value(a / b) : Value(); }},
    {"%", 10, [](int64_t a, int64_t b) { return divides(a, b) ? Value(a % b) : Value(); }},
});

class Sum {
 public:
  Sum(string_view text, const SumVariables& variables) : text_(text), variables_(variables) {}

  Value value() {
    Value result = read_assignment(0);
    while (!fails_ && skips(",")) result = read_assignment(0);
    return fails_ || next() != '\0' ? Value() : result;
  }

 private:
  static constexpr int kDeepestSum = 100;

  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool skips(string_view sign) {
    next();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  Value fail() {
    fails_ = true;
    return std::nullopt;
  }

  std::string read_name() {
    next();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_shell_name_letter(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  const BinarySign* find_sign() {
    next();
    const string_view rest = text_.substr(at_);
    const auto found =
        std::find_if(kBinarySigns.begin(), kBinarySigns.end(), [&](const BinarySign& sign) {
          return rest.starts_with(sign.sign);
        });
    return found == kBinarySigns.end() ? nullptr : &*found;
  }

  void assign(const std::string& name, Value value) {
    if (!variables_.assign) {
      fail();
    } else if (acts_ && !fails_) {
      variables_.assign(name, value);
    }
  }

  /// NAME = sum, NAME += sum and the like, or a sum without.
  Value read_assignment(int depth) {
    const std::size_t begin = at_;
    const std::string name = read_name();
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0) {
      const BinarySign* sign = find_sign();
      const std::size_t length = sign == nullptr ? 0 : sign->sign.size();
      const bool compares =
          sign != nullptr && (sign->binds == 6 || sign->sign == "<=" || sign->sign == ">=");
      if (!compares && next() != '\0' && text_.substr(at_ + length).starts_with('=')) {
        at_ += length + 1;
        return read_assigned(name, sign, depth);
      }
    }
    at_ = begin;
    return read_choice(depth);
  }

  Value read_assigned(const std::string& name, const BinarySign* sign, int depth) {
    if (depth > kDeepestSum) return fail();
    Value value = read_assignment(depth + 1);
    if (sign != nullptr) {
      const Value old = variables_.value(name);
      value = old && value ? sign->value(*old, *value) : Value();
    }
    assign(name, value);
    return value;
  }

  /// condition ? sum : sum
  Value read_choice(int depth) {
    if (depth > kDeepestSum) return fail();
    const Value condition = read_binary(1, depth);
    if (!skips("?")) return condition;
    const bool acts = acts_;
    acts_ = acts && condition && *condition != 0;
    const Value yes = read_assignment(depth + 1);
    if (!skips(":")) return fail();
    acts_ = acts && condition && *condition == 0;
    const Value no = read_choice(depth + 1);
    acts_ = acts;
    if (condition) return *condition != 0 ? yes : no;
    return yes == no ? yes : Value();
  }

  Value read_binary(int binds, int depth) {
    Value left = read_factor(depth);
    while (!fails_) {
      const BinarySign* sign = find_sign();
      if (sign == nullptr || sign->binds < binds) break;
      at_ += sign->sign.size();
      const bool acts = acts_;
      if (sign->sign == "&&") acts_ = acts && left && *left != 0;
      if (sign->sign == "||") acts_ = acts && left && *left == 0;
      const bool from_right = sign->sign == "**";
      const Value right = read_binary(sign->binds + (from_right ? 0 : 1), depth + 1);
      acts_ = acts;
      left = applied(*sign, left, right);
    }
    return left;
  }

  /// One side can decide && and ||.
  static Value applied(const BinarySign& sign, Value left, Value right) {
    if (left && right) return sign.value(*left, *right);
    const Value known = left ? left : right;
    if (known && sign.sign == "&&" && *known == 0) return 0;
    if (known && sign.sign == "||" && *known != 0) return 1;
    return std::nullopt;
  }

  Value read_factor(int depth) {
    if (depth > kDeepestSum) return fail();
    if (next() == kUnknownBegins || next() == kUndecidedBegins) return skip_unknown();
    for (const int step : {1, -1}) {
      if (skips(step > 0 ? "++" : "--")) return stepped(read_name(), step, true);
    }
    if (skips("(")) return read_inner(depth);
    if (skips("+")) return read_factor(depth + 1);
    if (skips("-")) return applied(*minus(), 0, read_factor(depth + 1));
    if (skips("!")) {
      const Value denied = read_factor(depth + 1);
      return denied ? Value(*denied == 0) : denied;
    }
    if (skips("~")) {
      const Value bits = read_factor(depth + 1);
      return bits ? Value(~*bits) : bits;
    }
    return read_operand();
  }

  static const BinarySign* minus() {
    return std::find_if(kBinarySigns.begin(), kBinarySigns.end(), [](const BinarySign& sign) {
      return sign.sign == "-";
    });
  }

  Value read_inner(int depth) {
    const Value inner = read_assignment(depth + 1);
    return skips(")") ? inner : fail();
  }

  Value read_operand() {
    const std::string name = read_name();
    if (name.empty()) return fail();
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) return shell_number(name);
    if (skips("++")) return stepped(name, 1, false);
    if (skips("--")) return stepped(name, -1, false);
    return variables_.value(name);
  }

  Value stepped(const std::string& name, int step, bool before) {
    if (name.empty()) return fail();
    const Value old = variables_.value(name);
    const Value stepped = old ? checked<add>(*old, step) : old;
    assign(name, stepped);
    return before ? stepped : old;
  }

  Value skip_unknown() {
    at_ = std::min(text_.find(kUnknownEnds, at_), text_.size() - 1) + 1;
    return std::nullopt;
  }

  string_view text_;
  const SumVariables& variables_;
  std::size_t at_ = 0;
  bool acts_ = true;  ///< false where a shell does not come to
  bool fails_ = false;
};

}  // namespace

std::optional<int64_t> shell_number(string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const bool is_octal = !is_hex && text.size() > 1 && text.starts_with('0');
  if (is_hex) text.remove_prefix(2);
  int64_t number = 0;
  const int base = is_hex ? 16 : is_octal ? 8 : 10;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  const bool is_number = error == std::errc() && stop == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> shell_sum(string_view text, const SumVariables& variables) {
  return Sum(text, variables).value();
}

}  // namespace sim
