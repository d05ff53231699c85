// Text that came from outside: whether it is UTF-8, and how it is shown to a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace estimator {

/// The first byte that is not part of well-formed UTF-8 (RFC 3629: neither overlong, nor a
/// surrogate, nor above U+10FFFF), or npos.
std::size_t find_non_utf8(std::string_view text);

/// `text` with everything escaped that a terminal would obey instead of showing: control characters
/// other than the newline (U+0000 to U+001F and U+007F to U+009F) as \u001b, which in JSON means
/// the same character, and bytes that are not UTF-8 as \xff.
std::string printable(std::string_view text);

/// The pieces between the separators: of "a..b" at '.' three, the second one empty; of "" one.
std::vector<std::string> split(std::string_view text, char separator);

/// Whether there are characters, and each is one of 0 to 9.
bool is_digits(std::string_view text);

}  // namespace estimator
