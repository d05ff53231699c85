#include "tests/fuzz/fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "estimator/base/errors.h"

namespace fuzz {
namespace {

using estimator::Json;

int64_t accepted = 0;
std::string refusal;

/// Problems are read by people, on a terminal.
constexpr size_t kLongestMessage = 64 * 1024;

constexpr std::string_view kSigned[] = {
    "error", "free_bytes", "gain_bytes", "gain_seconds", "headroom_bytes", "peer"};

bool is_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return (byte < ' ' && letter != '\n' && letter != '\t') || byte == 0x7f;
}

void check_refusal(const estimator::UserError& error) {
  const std::string_view message = error.what();
  if (message.size() > kLongestMessage) {
    fail(fmt::format("a refusal of {} bytes: {}...", message.size(), message.substr(0, 400)));
  }
  expect_printable(message, "a refusal");
}

void check_number(const Json& number, const std::string& path, std::string_view key) {
  const double value = number.get<double>();
  if (!std::isfinite(value)) fail(fmt::format("{} is {}", path, value));
  if (value < 0 && std::find(std::begin(kSigned), std::end(kSigned), key) == std::end(kSigned)) {
    fail(fmt::format("{} is negative: {}", path, value));
  }
}

void check_numbers(const Json& json, const std::string& path, std::string_view key) {
  if (json.is_null()) fail(path + " is null");
  if (json.is_number()) check_number(json, path, key);
  if (json.is_array()) {
    for (const Json& element : json) check_numbers(element, path + "[]", key);
  }
  if (json.is_object()) {
    for (const auto& item : json.items()) {
      if (item.key() != "plan") check_numbers(item.value(), path + "." + item.key(), item.key());
    }
  }
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-' ||
         letter == '.' || letter == '/';
}

}  // namespace

void fail(const std::string& what) {
  fmt::print(stderr, "fuzz: {}\n", what);
  std::abort();
}

int read_and_use(const std::function<void()>& use) {
  try {
    use();
    ++accepted;
  } catch (const Refused&) {
    refusal.clear();
  } catch (const estimator::UserError& error) {
    check_refusal(error);
    refusal = error.what();
  } catch (const std::exception& error) {
    fail(fmt::format("an exception that would be exit code 70: {}", error.what()));
  }
  return 0;
}

int64_t accepted_inputs() { return accepted; }

const std::string& last_refusal() { return refusal; }

void expect_written_whole(const Json& document, const std::string& name) {
  if (Json::parse(document.dump()) != document) fail(name + " reads back as another one");
}

void expect_sound_numbers(const Json& document, const std::string& name) {
  check_numbers(document, name, "");
}

void expect_sound_text(std::string_view text, const std::string& name) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = static_cast<size_t>(
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_word) -
        text.begin());
    std::string_view word = text.substr(begin, end - begin);
    if (word.starts_with('-')) word.remove_prefix(1);
    if (word == "nan" || word == "inf") {
      const size_t line = text.rfind('\n', begin) + 1;
      fail(fmt::format(
          "{} says {}: {}", name, word, text.substr(line, text.find('\n', end) - line)));
    }
    begin = end + 1;
  }
}

void expect_printable(std::string_view text, const std::string& name) {
  const auto found = std::find_if(text.begin(), text.end(), is_control);
  if (found == text.end()) return;
  const auto place = static_cast<size_t>(found - text.begin());
  const Json around = text.substr(place - std::min<size_t>(place, 40), 80);
  fail(fmt::format("{} holds a control character: {}",
                   name,
                   around.dump(-1, ' ', true, Json::error_handler_t::replace)));
}

}  // namespace fuzz
