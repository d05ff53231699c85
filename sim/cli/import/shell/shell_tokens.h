// Divides the text of a shell script into words and operators. Words keep their quotes and
// expansions, which shell_script.cpp reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sim {

struct ShellToken {
  enum class Kind {
    kWord,      ///< text as it stands, quotes included
    kArray,     ///< NAME=( ... ) or NAME+=( ... ): text is "NAME=" or "NAME+=", items its words
    kOperator,  ///< ; & | && || ;; ( ) and a newline, "\n"
    kTest,      ///< what stands between [[ and ]]
    kSum,       ///< what stands between (( and ))
    kHeredoc,   ///< the lines of a here document
    kDirective  ///< the arguments of a line #SBATCH
  };
  Kind kind = Kind::kWord;
  std::string text;
  int line = 0;  ///< from 1
  std::vector<ShellToken> items;

  bool is(Kind other, std::string_view its_text) const { return kind == other && text == its_text; }
};

/// The tokens of a script, whose first line has the number `line`. Redirections are left out, but
/// for here documents. Quotes that are not closed end with the text. Throws UserError that names
/// `origin` if arrays are nested too deeply.
std::vector<ShellToken> shell_tokens(std::string_view text, int line, const std::string& origin);

/// Whether a name of a variable may have the letter.
bool is_shell_name_letter(char letter);

/// The end of the quoted text, `$...` or single character that begins at `at`.
std::size_t end_of_shell_part(std::string_view text, std::size_t at);

}  // namespace sim
