// Reads the expressions of Python: https://docs.python.org/3/reference/expressions.html.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/python/python_syntax.h"
#include "sim/cli/import/python/python_tokens.h"

namespace sim {

/// Where a reader stands among the tokens of a file.
class PythonCursor {
 public:
  PythonCursor(std::vector<PythonToken> tokens, const std::string& origin)
      : tokens_(std::move(tokens)), origin_(origin) {}

  const PythonToken& now() const { return tokens_[at_]; }
  const PythonToken& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is_at(PythonToken::Kind kind) const { return now().kind == kind; }
  PythonToken take();

  /// Takes the token if it is this sign or word.
  bool accept(const char* word);
  /// Throws UserError where another token stands.
  void expect(const char* word);
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  std::vector<PythonToken> tokens_;
  const std::string& origin_;
  std::size_t at_ = 0;
};

/// One expression: "a, b" is a tuple where `may_be_tuple`.
PythonExpression read_python_expression(PythonCursor& cursor, bool may_be_tuple = false);

}  // namespace sim
