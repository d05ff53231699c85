// Divides Python into its tokens: https://docs.python.org/3/reference/lexical_analysis.html.
#pragma once

#include <string>
#include <vector>

namespace sim {

struct PythonToken {
  enum class Kind { kName, kNumber, kText, kTemplate, kSign, kNewLine, kIndent, kDedent, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  ///< of kText: what it says, without its quotes; of kTemplate: as written
  int line = 1;

  bool is(const char* sign_or_word) const {
    return (kind == Kind::kSign || kind == Kind::kName) && text == sign_or_word;
  }
};

/// Throws UserError for text that is no Python.
[[noreturn]] void refuse_python(const std::string& origin, int line, const std::string& what);

/// The tokens, the last of which is kEnd. Lines within brackets are one line. Throws UserError for
/// text that is no Python: a string without an end, an indent that fits none before it.
std::vector<PythonToken> python_tokens(const std::string& text, const std::string& origin);

}  // namespace sim
