// Parsing of JSON, strict and with places in its messages.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace estimator {
namespace {

/// Reads a text and keeps nothing of it, to learn where and why it is no JSON. It remembers a key
/// that stands twice in one object (the last one would win in silence), and refuses structure that
/// no document of ours has: nesting that would overflow the stack of whoever walks it, and objects
/// of so many keys that looking each up would take for ever.
///
/// A callback of Json::parse() would see the same, but is quadratic in the length of an array.
class TextCheck : public nlohmann::json_sax<Json> {
 public:
  explicit TextCheck(std::string_view text) : text_(text) {
    is_valid_ = Json::sax_parse(text.begin(),
                                text.end(),
                                this,
                                nlohmann::detail::input_format_t::json,
                                /*strict=*/true,
                                /*ignore_comments=*/true);
  }

  bool is_valid() const { return is_valid_; }
  const std::string& duplicate() const { return duplicate_; }
  /// "line 3, column 7: syntax error while parsing value - ..."
  std::string where() const {
    const std::string_view before = text_.substr(0, std::min(position_, text_.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return fmt::format("line {}, column {}: {}", line, before.size() - start, why_);
  }

  struct TooMuch {
    std::string what, where;
  };

  bool parse_error(std::size_t position,
                   const std::string& /*last_token*/,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    // "[json.exception.parse_error.101] parse error at line 3, column 7: why" or
    // "[json.exception.out_of_range.406] why"
    why_ = error.what();
    why_.erase(0, std::min(why_.find("] ") + 2, why_.size()));
    const std::size_t colon = why_.find(": ");
    if (why_.rfind("parse error at", 0) == 0 && colon != std::string::npos)
      why_.erase(0, colon + 2);
    return false;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    std::set<std::string>& keys = keys_.back();
    if (keys.size() >= kMostKeys) {
      throw TooMuch{"has too many keys", fmt::format("one object has more than {}", kMostKeys)};
    }
    const auto [added, is_new] = keys.insert(key);
    if (!is_new) duplicate_ = *added;
    return true;
  }

 private:
  bool open() {
    constexpr std::size_t kDeepest = 64;
    keys_.emplace_back();
    if (keys_.size() <= kDeepest) return true;
    throw TooMuch{"is nested too deeply", fmt::format("more than {} brackets are open", kDeepest)};
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::string_view text_;
  bool is_valid_ = false;
  std::vector<std::set<std::string>> keys_;  ///< of all brackets that are open
  std::string duplicate_;
  std::size_t position_ = 0;
  std::string why_;
};

/// Throws UserError for structure that no document has.
TextCheck checked(std::string_view text, const std::string& origin) {
  try {
    return TextCheck(text);
  } catch (const TextCheck::TooMuch& much) {
    throw UserError({.what = fmt::format("{} {}", origin, much.what),
                     .where = much.where,
                     .help = "see `onerank list plans` for complete examples"});
  }
}

/// The text with blanks for commas that stand between a value and a closing bracket.
std::string without_trailing_commas(std::string_view text) {
  enum class Inside { kNothing, kString, kLine, kBlock };
  constexpr std::size_t kNone = std::string::npos;
  std::string blanked(text);
  Inside inside = Inside::kNothing;
  std::size_t comma = kNone;
  char before = '{';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const std::string_view two = text.substr(at, 2);
    if (inside == Inside::kString) {
      if (letter == '"') inside = Inside::kNothing;
      if (letter == '\\') ++at;
    } else if (inside == Inside::kLine || inside == Inside::kBlock) {
      const bool ends = inside == Inside::kLine ? letter == '\n' : two == "*/";
      if (ends && inside == Inside::kBlock) ++at;
      if (ends) inside = Inside::kNothing;
    } else if (two == "//" || two == "/*") {
      inside = two == "//" ? Inside::kLine : Inside::kBlock;
      ++at;
    } else if (std::string_view(" \t\r\n").find(letter) == kNone) {
      const bool follows_value = std::string_view("{[,:").find(before) == kNone;
      if ((letter == '}' || letter == ']') && comma != kNone) blanked[comma] = ' ';
      comma = letter == ',' && follows_value ? at : kNone;
      if (letter == '"') inside = Inside::kString;
      before = letter;
    }
  }
  return blanked;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& origin) {
  const TextCheck check = checked(text, origin);
  if (!check.is_valid()) {
    const std::string without = without_trailing_commas(text);
    if (without != text) return parse_json(without, origin);
    throw UserError({.what = fmt::format("{} is not valid JSON", origin),
                     .where = check.where(),
                     .help = "see `onerank list plans` for complete examples"});
  }
  if (!check.duplicate().empty()) {
    throw UserError({.what = "a key stands twice in one object",
                     .where = fmt::format("{}: {}", origin, check.duplicate()),
                     .help = "keep one of the two"});
  }
  return Json::parse(text.begin(),
                     text.end(),
                     /*cb=*/nullptr,
                     /*allow_exceptions=*/true,
                     /*ignore_comments=*/true);
}

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

JsonValue::JsonValue() : JsonValue(Json()) {}
JsonValue::JsonValue(Json json) : json_(std::make_shared<const Json>(std::move(json))) {}
JsonValue::JsonValue(bool value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(int value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(int64_t value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(const char* value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(const std::string& value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(const std::vector<int64_t>& value) : JsonValue(Json(value)) {}

bool JsonValue::operator==(const JsonValue& other) const { return *json_ == *other.json_; }

}  // namespace estimator
