// Follows the statements of Python files for PythonProgram.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/import/python/python_program.h"
#include "sim/cli/import/python/python_syntax.h"
#include "sim/cli/import/python/python_value.h"

namespace sim {

/// A Python exception that the file raises.
struct PythonRaised {
  std::string place;
};

/// Counts a level of calls while it lives.
class PythonDepth {
 public:
  explicit PythonDepth(int& depth) : depth_(++depth) {}
  ~PythonDepth() { --depth_; }
  PythonDepth(const PythonDepth&) = delete;
  PythonDepth& operator=(const PythonDepth&) = delete;
  bool is_too_deep() const { return depth_ > kDeepest; }

 private:
  static constexpr int kDeepest = 60;
  int& depth_;
};

struct PythonCall {
  std::vector<PythonValue> positional = {};
  std::vector<std::pair<std::string, PythonValue>> named = {};
  std::string place = {};

  /// By its name, else by its position; null without it.
  const PythonValue* argument(const std::string& name, std::size_t position) const;
};

/// What a function of Python's own gives; nothing if `name` is none that is known.
std::optional<PythonValue> call_python_builtin(const std::string& name, const PythonCall& call);
/// The same of a method of a list, dict or text.
std::optional<PythonValue> call_python_method(const PythonValue& value,
                                              const std::string& method,
                                              const PythonCall& call);

class PythonInterpreter {
 public:
  explicit PythonInterpreter(PythonReading reading) : reading_(std::move(reading)) {}

  PythonModule& load(PythonFile file, const std::string& name);
  /// Null if there is no file of it.
  PythonModule* find_module(const std::string& path, const std::string& module);
  PythonValue name_in(PythonModule& module, const std::string& name);
  PythonValue call(const PythonValue& callee, const PythonCall& call);
  const std::vector<std::string>& undecided() const { return undecided_; }

 private:
  struct Scope {
    PythonModule& module;
    std::map<std::string, PythonValue>& names;
    std::optional<PythonValue> result = {};
    bool is_undecided = false;  ///< after a branch that may have returned
  };

  void count_step(const Scope& scope, int line);
  static std::string place_of(const Scope& scope, int line);

  // Statements.
  void execute(const std::vector<PythonStatement>& statements, Scope& scope);
  void execute(const PythonStatement& statement, Scope& scope);
  void execute_if(const PythonStatement& statement, Scope& scope);
  void execute_for(const PythonStatement& statement, Scope& scope);
  void execute_try(const PythonStatement& statement, Scope& scope);
  static void bind(const PythonStatement& statement, Scope& scope);
  void assign(const PythonExpression& target, PythonValue value, Scope& scope);
  void assign_each(const PythonExpression& targets, const PythonValue& value, Scope& scope);
  void forget(const std::vector<PythonStatement>& statements, Scope& scope);
  void forget(const PythonStatement& statement, Scope& scope);
  PythonValue holder_of(const PythonExpression& target, Scope& scope);

  // Expressions.
  PythonValue evaluate(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_name(const std::string& name, Scope& scope);
  PythonValue evaluate_attribute(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_index(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_call(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_dict(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_unary(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_binary(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_choice(const PythonExpression& expression, Scope& scope);
  PythonValue evaluate_each(const PythonExpression& expression, Scope& scope);
  PythonCall arguments_of(const PythonExpression& expression, Scope& scope);
  PythonValue resolved(const PythonValue& imported);

  // Calls.
  PythonValue call_function(const PythonValue& function, const PythonCall& call);
  PythonValue make_object(const PythonValue& of_class, const PythonCall& call);
  PythonValue recorded(const std::string& called,
                       const PythonCall& call,
                       const PythonValue* receiver);
  void add_fields(const PythonValue& of_class, const PythonValue& object);

  PythonReading reading_;
  std::deque<PythonModule> modules_;
  std::vector<std::string> undecided_;
  int64_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace sim
