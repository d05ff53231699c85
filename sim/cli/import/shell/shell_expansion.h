// The words that a word of a shell script stands for: quotes, variables, arrays and sums.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/import/shell/shell_script.h"

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
  /// As a test of the script reads it: variables that nobody sets are empty. What is not known for
  /// another reason stays between marks.
  std::string tested_word(std::string_view raw);

  /// The value of a sum, if all of its variables are numbers.
  std::optional<int64_t> sum(std::string_view text);
  /// The text of a sum with its `$NAME` replaced.
  std::string sum_text(std::string_view raw);
  /// The value of a variable in a sum. Nothing: it is not set, or no number.
  std::optional<int64_t> number(const std::string& name) const;

  /// Throws UserError when a script makes too many bytes of text in all.
  void count(std::size_t bytes);

 private:
  /// A piece of text, and whether blanks in it divide words.
  struct Piece {
    std::string text;
    bool is_quoted;
    bool begins_word = false;  ///< an item of an array that stands in quotes
  };

  void add_pieces(std::string_view raw, bool is_quoted, std::vector<Piece>& pieces);
  void add_expansion(std::string_view raw, bool is_quoted, std::vector<Piece>& pieces);
  bool add_hosts(std::string_view raw, std::vector<Piece>& pieces);
  void add_braces(std::string_view inner, bool is_quoted, std::vector<Piece>& pieces);
  void add_variable(const std::string& name,
                    bool all,
                    bool is_quoted,
                    std::string_view written,
                    std::vector<Piece>& pieces);
  std::string joined(std::string_view raw, bool is_quoted);

  ShellVariables& variables_;
  const std::string& origin_;
  std::size_t bytes_ = 0;
  int depth_ = 0;
};

/// Marks around what only the shell knows: a variable that nobody sets, which is empty in tests and
/// takes its default, or else what a command, a test or a sum decides that nobody can follow; the
/// last of these with a mark of its own where one of its values holds arguments (`--key ...`).
inline constexpr char kUnknownBegins = '\x01';
inline constexpr char kUndecidedBegins = '\x03';
inline constexpr char kArgumentsBegin = '\x04';
inline constexpr char kUnknownEnds = '\x02';

/// The text between the marks of what is not decided.
std::string undecided(std::string_view written);
std::string undecided_arguments(std::string_view written);
bool is_undecided(const std::string& text);

/// Whether a word of the text is an argument, "-x" or "--key", or may be one.
bool has_argument(std::string_view text);

/// A word of a command from a text with marks.
ShellWord marked_word(const std::string& text, int line);
/// Divides the text at its blanks, but for those between marks.
std::vector<std::string> divided_outside_marks(const std::string& text);

/// The text without the marks, and whether it had any.
std::string without_marks(const std::string& text);
bool has_marks(const std::string& text);
/// The text without what stands between marks.
std::string known_part(const std::string& text);

}  // namespace sim
