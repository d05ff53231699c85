// Parsing of JSON, strict and with places in its messages.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace estimator {
namespace {

/// Remembers a key that stands twice in one object (the last one would win in silence), and refuses
/// structure that no document of ours has: nesting that would overflow the stack of whoever walks
/// it, and objects of so many keys that looking each up would take for ever.
class StructureCheck {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) {
      throw TooMuch{"is nested too deeply",
                    fmt::format("more than {} brackets are open", kDeepest)};
    }
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) add_key(parsed.get<std::string>());
    return true;
  }
  const std::string& duplicate() const { return duplicate_; }

  struct TooMuch {
    std::string what, where;
  };

 private:
  void add_key(std::string key) {
    if (keys_.back().size() >= kMostKeys) {
      throw TooMuch{"has too many keys", fmt::format("one object has more than {}", kMostKeys)};
    }
    const auto [added, is_new] = keys_.back().insert(std::move(key));
    if (!is_new) duplicate_ = *added;
  }

  std::vector<std::set<std::string>> keys_;
  std::string duplicate_;
};

/// Parses once more, to learn where and why a text is no JSON.
class Failure : public nlohmann::json_sax<Json> {
 public:
  explicit Failure(std::string_view text) : text_(text) {
    Json::sax_parse(text.begin(),
                    text.end(),
                    this,
                    nlohmann::detail::input_format_t::json,
                    /*strict=*/true,
                    /*ignore_comments=*/true);
  }
  /// "line 3, column 7: syntax error while parsing value - ..."
  std::string where() const {
    const std::string_view before = text_.substr(0, std::min(position_, text_.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return fmt::format("line {}, column {}: {}", line, before.size() - start, why_);
  }

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
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
  std::string why_;
};

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
  StructureCheck check;
  try {
    Json json = Json::parse(text.begin(),
                            text.end(),
                            std::ref(check),
                            /*allow_exceptions=*/true,
                            /*ignore_comments=*/true);
    if (!check.duplicate().empty()) {
      throw UserError({.what = "a key stands twice in one object",
                       .where = fmt::format("{}: {}", origin, check.duplicate()),
                       .help = "keep one of the two"});
    }
    return json;
  } catch (const StructureCheck::TooMuch& much) {
    throw UserError({.what = fmt::format("{} {}", origin, much.what),
                     .where = much.where,
                     .help = "see `onerank list plans` for complete examples"});
  } catch (const Json::exception&) {
    const std::string without = without_trailing_commas(text);
    if (without != text) return parse_json(without, origin);
    throw UserError({.what = fmt::format("{} is not valid JSON", origin),
                     .where = Failure(text).where(),
                     .help = "see `onerank list plans` for complete examples"});
  }
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
