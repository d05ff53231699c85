// Text that came from outside: checks that it is UTF-8, and makes it safe to show on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace estimator {

/// The position of the first byte that is not part of well-formed UTF-8, or npos. RFC 3629 forbids
/// overlong forms, surrogates and characters above U+10FFFF.
std::size_t find_non_utf8(std::string_view text);

/// `text` with everything escaped that a terminal would obey instead of showing. Control characters
/// other than the newline (U+0000 to U+001F and U+007F to U+009F) become \u001b, which in JSON
/// means the same character; bytes that are not UTF-8 become \xff.
std::string printable(std::string_view text);

/// The pieces between the separators. "a..b" split at '.' gives three pieces, of which the second
/// is empty; "" gives one empty piece.
std::vector<std::string> split(std::string_view text, char separator);

/// `text` in single quotes, in which a shell takes every character as it is but a single quote.
std::string in_single_quotes(std::string_view text);

/// `text` as one word of a shell: as it is where a shell leaves it so, else in single quotes.
std::string shell_word(std::string_view text);

/// With a to z in place of A to Z.
std::string lower_case(std::string_view text);

/// Whether `text` is not empty and has only the digits 0 to 9.
bool is_digits(std::string_view text);

}  // namespace estimator
