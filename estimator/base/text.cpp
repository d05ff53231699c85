#include "estimator/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace estimator {
namespace {

/// Well-formed UTF-8 by its first byte (Unicode 15.0, table 3-7). The range of the second byte
/// excludes overlong forms, surrogates and what is above U+10FFFF; later bytes are 80 to BF.
struct Sequence {
  std::uint8_t first_low, first_high;
  std::size_t length;
  std::uint8_t second_low, second_high;
};
constexpr Sequence kSequences[] = {
    {0x00, 0x7f, 1, 0, 0},
    {0xc2, 0xdf, 2, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf},
    {0xed, 0xed, 3, 0x80, 0x9f},
    {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf},
    {0xf4, 0xf4, 4, 0x80, 0x8f},
};

bool is_between(char byte, std::uint8_t low, std::uint8_t high) {
  const auto value = static_cast<std::uint8_t>(byte);
  return value >= low && value <= high;
}

/// Bytes of the character that `text` begins with; 0: it begins with none. `text` is not empty.
std::size_t character_length(std::string_view text) {
  for (const Sequence& sequence : kSequences) {
    if (!is_between(text[0], sequence.first_low, sequence.first_high)) continue;
    if (text.size() < sequence.length) return 0;
    if (sequence.length > 1 && !is_between(text[1], sequence.second_low, sequence.second_high)) {
      return 0;
    }
    for (std::size_t i = 2; i < sequence.length; ++i) {
      if (!is_between(text[i], 0x80, 0xbf)) return 0;
    }
    return sequence.length;
  }
  return 0;
}

/// The code point of a control character that is to be escaped, or -1. The second block of control
/// characters, U+0080 to U+009F, is C2 80 to C2 9F.
int control_character(std::string_view character) {
  const auto first = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return (first < 0x20 && first != '\n') || first == 0x7f ? first : -1;
  const auto second = static_cast<std::uint8_t>(character[1]);
  return character.size() == 2 && first == 0xc2 && second <= 0x9f ? second : -1;
}

}  // namespace

std::size_t find_non_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[at++]));
      continue;
    }
    const std::string_view character = text.substr(at, length);
    const int control = control_character(character);
    if (control >= 0) {
      shown += fmt::format("\\u{:04x}", control);
    } else {
      shown += character;
    }
    at += length;
  }
  return shown;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    pieces.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return pieces;
}

std::string in_single_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kSpecial = " \t\n'\"[]{}()*?$&|;<>\\`#~!";
  const bool is_plain = !text.empty() && text.find_first_of(kSpecial) == text.npos;
  return is_plain ? std::string(text) : in_single_quotes(text);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return lower;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace estimator
