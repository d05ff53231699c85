// The statements and expressions of a Python file, as far as files of configurations have them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "estimator/base/json_value.h"

namespace sim {

struct PythonExpression {
  enum class Kind {
    kConstant,   ///< None, True, a number, a text
    kName,       ///< text
    kAttribute,  ///< parts[0].text
    kIndex,      ///< parts[0][parts[1]]
    kCall,    ///< parts[0](parts[1], ...); words has the keyword of each, "" without one, "*", "**"
    kList,    ///< also a tuple and a set: its parts
    kDict,    ///< keys and values in turn; the word of a key is "**" where a value is spread
    kUnary,   ///< text parts[0]
    kBinary,  ///< parts[0] text parts[1]: sums, comparisons, "and", "or", "in", "is"
    kChoice,  ///< parts[0] if parts[1] else parts[2]
    kEach,    ///< [parts[0] for parts[1] in parts[2]]
    kOther,   ///< what is not read: lambda, f"...", a slice
  };
  Kind kind = Kind::kOther;
  std::string text = {};
  estimator::JsonValue constant = {};
  std::vector<PythonExpression> parts = {};
  std::vector<std::string> words = {};
  int line = 0;
};

struct PythonParameter {
  std::string name;
  std::vector<PythonExpression> otherwise = {};  ///< its default; empty without one
  bool takes_all = false;                        ///< *names, **names
};

/// `from module import name as as_name`, or `import module as as_name` without a name.
struct PythonImport {
  std::string module;  ///< with the dots of a relative one
  std::string name;
  std::string as_name;
};

struct PythonStatement {
  enum class Kind {
    kExpression,  ///< expressions[0]
    kAssign,      ///< expressions: targets, and the value last
    kAddTo,       ///< expressions[0] text expressions[1]: text is the sign of the sum
    kReturn,      ///< expressions, if it has a value
    kIf,          ///< expressions[0]; body, otherwise
    kFor,         ///< expressions[0] in expressions[1]; body
    kTry,         ///< body, or what handles an exception: otherwise
    kFunction,    ///< text, parameters, body
    kClass,       ///< text, bases in expressions, body
    kImport,      ///< imports
    kRaise,
    kOther,  ///< what is not read: while, with, del; or nothing: pass, assert
  };
  Kind kind = Kind::kOther;
  std::string text = {};
  std::vector<PythonExpression> expressions = {};
  std::vector<PythonParameter> parameters = {};
  std::vector<PythonImport> imports = {};
  std::vector<PythonStatement> body = {};
  std::vector<PythonStatement> otherwise = {};
  int line = 0;
};

/// The statements of a file. Throws UserError for text that is no Python, or is nested deeper than
/// 100 levels.
std::vector<PythonStatement> read_python(const std::string& text, const std::string& origin);

}  // namespace sim
