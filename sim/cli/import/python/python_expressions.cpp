#include "sim/cli/import/python/python_expressions.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/number_text.h"

namespace sim {

PythonToken PythonCursor::take() {
  PythonToken token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool PythonCursor::accept(const char* word) {
  const bool is_there = now().is(word);
  if (is_there) take();
  return is_there;
}

void PythonCursor::expect(const char* word) {
  if (!accept(word)) refuse(fmt::format("\"{}\" is needed before \"{}\"", word, now().text));
}

void PythonCursor::refuse(const std::string& what) const {
  refuse_python(origin_, now().line, what);
}

namespace {

using ExpressionKind = PythonExpression::Kind;
using estimator::Json;

constexpr int kDeepestExpression = 100;

/// Signs of two operands, those that bind least first.
const std::vector<std::vector<std::string_view>>& sign_levels() {
  static const std::vector<std::vector<std::string_view>> levels = {
      {"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}};
  return levels;
}

class ExpressionReader {
 public:
  explicit ExpressionReader(PythonCursor& cursor) : cursor_(cursor) {}

  PythonExpression tuple_or_one() { return with_others(starred()); }

  PythonExpression one() {
    return deeper([this] {
      PythonExpression read = cursor_.now().is("lambda") ? lambda() : choice();
      return cursor_.accept(":=") ? other(one()) : read;
    });
  }

 private:
  template <class Read>
  PythonExpression deeper(const Read& read) {
    if (++depth_ > kDeepestExpression) cursor_.refuse("an expression is nested too deeply");
    PythonExpression whole = read();
    --depth_;
    return whole;
  }

  PythonExpression make(ExpressionKind kind) const {
    return {.kind = kind, .line = cursor_.now().line};
  }

  static PythonExpression other(const PythonExpression& in_place_of) {
    return {.kind = ExpressionKind::kOther, .line = in_place_of.line};
  }

  static PythonExpression of_two(std::string sign, PythonExpression left, PythonExpression right) {
    const int line = left.line;
    return {.kind = ExpressionKind::kBinary,
            .text = std::move(sign),
            .parts = {std::move(left), std::move(right)},
            .line = line};
  }

  /// The tuple that an expression begins, or itself where no comma follows.
  PythonExpression with_others(PythonExpression first) {
    if (!cursor_.now().is(",")) return first;
    PythonExpression tuple = make(ExpressionKind::kList);
    tuple.parts.push_back(std::move(first));
    while (cursor_.accept(",") && begins_expression()) tuple.parts.push_back(starred());
    return tuple;
  }

  bool begins_expression() const {
    const PythonToken& token = cursor_.now();
    constexpr std::string_view kEnds[] = {")", "]", "}", "=", ":", "in"};
    const bool ends_line =
        token.kind == PythonToken::Kind::kNewLine || token.kind == PythonToken::Kind::kEnd;
    return !ends_line && !estimator::contains(kEnds, token.text);
  }

  PythonExpression lambda() {
    PythonExpression whole = make(ExpressionKind::kOther);
    while (!cursor_.now().is(":") && !cursor_.is_at(PythonToken::Kind::kEnd)) cursor_.take();
    cursor_.expect(":");
    one();
    return whole;
  }

  PythonExpression choice() {
    PythonExpression value = any_of();
    if (!cursor_.accept("if")) return value;
    PythonExpression whole = make(ExpressionKind::kChoice);
    whole.parts.push_back(std::move(value));
    whole.parts.push_back(any_of());
    cursor_.expect("else");
    whole.parts.push_back(one());
    return whole;
  }

  PythonExpression any_of() {
    PythonExpression left = all_of();
    while (cursor_.accept("or")) left = of_two("or", std::move(left), all_of());
    return left;
  }

  PythonExpression all_of() {
    PythonExpression left = negation();
    while (cursor_.accept("and")) left = of_two("and", std::move(left), negation());
    return left;
  }

  PythonExpression negation() {
    if (!cursor_.accept("not")) return comparison();
    PythonExpression whole = make(ExpressionKind::kUnary);
    whole.text = "not";
    whole.parts.push_back(deeper([this] { return negation(); }));
    return whole;
  }

  /// The sign of a comparison, of one or two words; "" where none stands.
  std::string comparison_sign() {
    constexpr std::array<const char*, 6> kSigns = {"==", "!=", "<=", ">=", "<", ">"};
    for (const char* sign : kSigns) {
      if (cursor_.accept(sign)) return sign;
    }
    if (cursor_.accept("in")) return "in";
    if (cursor_.accept("is")) return cursor_.accept("not") ? "!=" : "==";
    if (!cursor_.now().is("not") || !cursor_.next().is("in")) return "";
    cursor_.take();
    cursor_.take();
    return "not in";
  }

  PythonExpression comparison() {
    PythonExpression left = signs(0);
    if (no_comparison_) return left;
    int compared = 0;
    for (std::string sign = comparison_sign(); !sign.empty(); sign = comparison_sign()) {
      left = of_two(std::move(sign), std::move(left), signs(0));
      ++compared;
    }
    return compared > 1 ? other(left) : left;
  }

  PythonExpression signs(std::size_t level) {
    if (level == sign_levels().size()) return sign_before();
    PythonExpression left = signs(level + 1);
    while (cursor_.is_at(PythonToken::Kind::kSign) &&
           estimator::contains(sign_levels()[level], std::string_view(cursor_.now().text))) {
      std::string sign = cursor_.take().text;
      left = of_two(std::move(sign), std::move(left), signs(level + 1));
    }
    return left;
  }

  PythonExpression sign_before() {
    const bool has_sign = cursor_.now().is("-") || cursor_.now().is("+") || cursor_.now().is("~");
    if (!has_sign) return power();
    PythonExpression whole = make(ExpressionKind::kUnary);
    whole.text = cursor_.take().text;
    whole.parts.push_back(deeper([this] { return sign_before(); }));
    return whole;
  }

  PythonExpression power() {
    PythonExpression base = with_accesses();
    if (!cursor_.accept("**")) return base;
    return of_two("**", std::move(base), deeper([this] { return sign_before(); }));
  }

  PythonExpression with_accesses() {
    cursor_.accept("await");
    PythonExpression value = atom();
    while (true) {
      if (cursor_.accept(".")) {
        value = access(ExpressionKind::kAttribute, std::move(value));
        value.text = cursor_.take().text;
      } else if (cursor_.accept("(")) {
        value = call(std::move(value));
      } else if (cursor_.accept("[")) {
        value = index(std::move(value));
      } else {
        return value;
      }
    }
  }

  PythonExpression access(ExpressionKind kind, PythonExpression of) const {
    PythonExpression whole = make(kind);
    whole.parts.push_back(std::move(of));
    return whole;
  }

  PythonExpression call(PythonExpression callee) {
    PythonExpression whole = access(ExpressionKind::kCall, std::move(callee));
    while (!cursor_.accept(")")) {
      whole.words.push_back(argument_word());
      whole.parts.push_back(with_loops(one()));
      if (!cursor_.now().is(")")) cursor_.expect(",");
    }
    return whole;
  }

  std::string argument_word() {
    if (cursor_.accept("**")) return "**";
    if (cursor_.accept("*")) return "*";
    if (!cursor_.is_at(PythonToken::Kind::kName) || !cursor_.next().is("=")) return "";
    std::string word = cursor_.take().text;
    cursor_.take();
    return word;
  }

  PythonExpression index(PythonExpression of) {
    PythonExpression whole = access(ExpressionKind::kIndex, std::move(of));
    bool is_slice = false;
    while (!cursor_.accept("]")) {
      const bool is_mark = cursor_.accept(":") || cursor_.accept(",");
      is_slice = is_slice || is_mark;
      if (!is_mark) whole.parts.push_back(one());
    }
    return is_slice || whole.parts.size() != 2 ? other(whole) : whole;
  }

  PythonExpression atom() {
    const PythonToken& token = cursor_.now();
    switch (token.kind) {
      case PythonToken::Kind::kNumber:
        return number();
      case PythonToken::Kind::kText:
        return text();
      case PythonToken::Kind::kTemplate:
        return unread_text();
      case PythonToken::Kind::kName:
        return name();
      default:
        break;
    }
    if (cursor_.accept("(")) return in_brackets();
    if (cursor_.accept("[")) return list("]");
    if (cursor_.accept("{")) return dict_or_set();
    if (cursor_.accept("...")) return make(ExpressionKind::kOther);
    cursor_.refuse(fmt::format("\"{}\" begins no expression", token.text));
  }

  PythonExpression constant(Json value) const {
    PythonExpression whole = make(ExpressionKind::kConstant);
    whole.constant = std::move(value);
    return whole;
  }

  PythonExpression number() {
    PythonExpression whole = make(ExpressionKind::kOther);
    const std::string written = cursor_.take().text;
    if (const auto value = estimator::parse_number<int64_t>(written)) {
      whole.constant = *value;
    } else if (const auto fraction = estimator::parse_number<double>(written)) {
      whole.constant = Json(*fraction);
    } else {
      return whole;
    }
    whole.kind = ExpressionKind::kConstant;
    return whole;
  }

  /// Texts side by side are one.
  PythonExpression text() {
    PythonExpression whole = make(ExpressionKind::kConstant);
    std::string said;
    while (cursor_.is_at(PythonToken::Kind::kText)) said += cursor_.take().text;
    if (cursor_.is_at(PythonToken::Kind::kTemplate)) return unread_text();
    whole.constant = said;
    return whole;
  }

  PythonExpression unread_text() {
    PythonExpression whole = make(ExpressionKind::kOther);
    const auto is_text = [&] {
      return cursor_.is_at(PythonToken::Kind::kText) || cursor_.is_at(PythonToken::Kind::kTemplate);
    };
    while (is_text()) cursor_.take();
    return whole;
  }

  PythonExpression name() {
    if (cursor_.accept("None")) return constant(nullptr);
    if (cursor_.accept("True")) return constant(true);
    if (cursor_.accept("False")) return constant(false);
    PythonExpression whole = make(ExpressionKind::kName);
    whole.text = cursor_.take().text;
    return whole;
  }

  PythonExpression in_brackets() {
    if (cursor_.accept(")")) return make(ExpressionKind::kList);
    if (cursor_.now().is("yield")) cursor_.refuse("yield is not read");
    PythonExpression value = with_others(with_loops(starred()));
    cursor_.expect(")");
    return value;
  }

  /// A spread value makes a list that is not read.
  PythonExpression starred() { return cursor_.accept("*") ? other(one()) : one(); }

  PythonExpression list(const char* end) {
    PythonExpression whole = make(ExpressionKind::kList);
    while (!cursor_.accept(end)) {
      PythonExpression item = with_loops(starred());
      if (item.kind == ExpressionKind::kEach) whole.kind = ExpressionKind::kEach;
      whole.parts.push_back(std::move(item));
      if (!cursor_.now().is(end)) cursor_.expect(",");
    }
    return whole.kind == ExpressionKind::kEach ? PythonExpression(whole.parts.front()) : whole;
  }

  PythonExpression dict_or_set() {
    PythonExpression whole = make(ExpressionKind::kDict);
    bool is_set = false;
    while (!cursor_.accept("}")) {
      const bool is_spread = cursor_.accept("**");
      PythonExpression key = is_spread ? make(ExpressionKind::kOther) : one();
      is_set = is_set || (!is_spread && !cursor_.now().is(":"));
      PythonExpression value =
          is_spread || cursor_.accept(":") ? with_loops(one()) : with_loops(key);
      whole.parts.push_back(std::move(key));
      whole.parts.push_back(std::move(value));
      whole.words.emplace_back(is_spread ? "**" : "");
      if (!cursor_.now().is("}")) cursor_.expect(",");
    }
    return is_set || has_loop(whole) ? other(whole) : whole;
  }

  static bool has_loop(const PythonExpression& whole) {
    return std::any_of(whole.parts.begin(), whole.parts.end(), [](const PythonExpression& part) {
      return part.kind == ExpressionKind::kEach;
    });
  }

  /// What follows an item of [item for name in list]; several loops and conditions are not read.
  PythonExpression with_loops(PythonExpression item) {
    if (!cursor_.accept("for")) return item;
    PythonExpression each = make(ExpressionKind::kEach);
    each.parts.push_back(std::move(item));
    read_loop(each.parts);
    bool is_more = false;
    while (cursor_.now().is("for") || cursor_.now().is("if")) {
      std::vector<PythonExpression> unread;
      is_more = true;
      if (cursor_.take().is("for")) {
        read_loop(unread);
      } else {
        any_of();
      }
    }
    if (is_more) each.parts.push_back(make(ExpressionKind::kOther));
    return each;
  }

  /// "name in list" behind "for".
  void read_loop(std::vector<PythonExpression>& into) {
    no_comparison_ = true;
    into.push_back(tuple_or_one());
    no_comparison_ = false;
    cursor_.expect("in");
    into.push_back(any_of());
  }

  PythonCursor& cursor_;
  int depth_ = 0;
  bool no_comparison_ = false;  ///< before the "in" of a loop
};

}  // namespace

PythonExpression read_python_expression(PythonCursor& cursor, bool may_be_tuple) {
  ExpressionReader reader(cursor);
  return may_be_tuple ? reader.tuple_or_one() : reader.one();
}

}  // namespace sim
