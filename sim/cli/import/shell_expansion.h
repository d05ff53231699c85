// The words that a word of a shell script stands for: quotes, variables, arrays and sums.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/import/shell_script.h"

namespace sim {

/// The items of arrays; other variables have one.
using ShellVariables = std::map<std::string, std::vector<std::string>>;

class ShellExpansion {
 public:
  ShellExpansion(ShellVariables& variables, const std::string& origin)
      : variables_(variables), origin_(origin) {}

  /// The words that the raw word stands for. Parts that are not known stay as they are written,
  /// between marks.
  std::vector<std::string> words(std::string_view raw);
  /// The same as one word, as on the right of an assignment.
  std::string word(std::string_view raw);
  /// Without the parts that are not known, which are empty in the tests of a script.
  std::string known_word(std::string_view raw);

  /// The value of a sum, if all of its variables are numbers.
  std::optional<int64_t> sum(std::string_view text);

 private:
  /// A piece of text, and whether blanks in it divide words.
  struct Piece {
    std::string text;
    bool is_quoted;
    bool begins_word = false;  ///< an item of an array that stands in quotes
  };

  void add_pieces(std::string_view raw, bool is_quoted, std::vector<Piece>& pieces);
  void add_expansion(std::string_view raw, bool is_quoted, std::vector<Piece>& pieces);
  void add_braces(std::string_view inner, bool is_quoted, std::vector<Piece>& pieces);
  void add_variable(const std::string& name,
                    bool all,
                    bool is_quoted,
                    std::string_view written,
                    std::vector<Piece>& pieces);
  void count(std::size_t bytes);

  ShellVariables& variables_;
  const std::string& origin_;
  std::size_t bytes_ = 0;
  int depth_ = 0;
};

/// Marks around what only the shell knows.
inline constexpr char kUnknownBegins = '\x01';
inline constexpr char kUnknownEnds = '\x02';

/// The text without the marks, and whether it had any.
std::string without_marks(const std::string& text);
bool has_marks(const std::string& text);
/// The text without what stands between marks.
std::string known_part(const std::string& text);

}  // namespace sim
