// Text in lines of a given width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

/// The words of `text` in lines of at most `columns` characters. A word is never divided: one that
/// is longer has a line of its own. An empty text is one empty line.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns);

/// `first` and then `text`, wrapped so that no line has more than `columns` characters; lines after
/// the first begin with as many spaces as `first` has characters. Ends with a newline.
std::string hanging_text(std::string_view first, std::string_view text, std::size_t columns);

/// Each line of `text` that has more than `columns` characters, wrapped. What follows its first
/// line begins below the words after "  - ", or two spaces further than the line.
std::string with_wrapped_lines(std::string_view text, std::size_t columns);

}  // namespace sim
