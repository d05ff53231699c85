#include "sim/cli/import/python/python_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/errors.h"
#include "sim/cli/import/python/python_interpreter.h"

namespace sim {

class PythonProgram::Interpreter {
 public:
  Interpreter(PythonFile file, PythonReading reading)
      : all(std::move(reading)), main(all.load(std::move(file), "")) {}

  /// Called without arguments.
  PythonValue call(const PythonValue& function) {
    try {
      return all.call(function, {.place = main.origin});
    } catch (const PythonRaised& raised) {
      throw estimator::UserError({.what = "the function raises an exception",
                                  .where = raised.place,
                                  .help = "name another function of the file"});
    }
  }

  PythonInterpreter all;
  PythonModule& main;
};

PythonProgram::PythonProgram(PythonFile file, PythonReading reading)
    : interpreter_(std::make_unique<Interpreter>(std::move(file), std::move(reading))) {}

PythonProgram::~PythonProgram() = default;

std::vector<std::string> PythonProgram::functions() const {
  std::vector<std::string> names;
  for (const PythonStatement& statement : interpreter_->main.statements) {
    if (statement.kind != PythonStatement::Kind::kFunction) continue;
    const bool needs_none =
        std::all_of(statement.parameters.begin(),
                    statement.parameters.end(),
                    [](const PythonParameter& parameter) {
                      return parameter.takes_all || !parameter.otherwise.empty();
                    });
    if (needs_none) names.push_back(statement.text);
  }
  return names;
}

PythonValue PythonProgram::call(const std::string& function) {
  return interpreter_->call(interpreter_->all.name_in(interpreter_->main, function));
}

PythonValue PythonProgram::call(const std::string& module, const std::string& function) {
  PythonModule* file = interpreter_->all.find_module(interpreter_->main.path, module);
  if (file == nullptr) return python_unknown(module);
  const PythonValue value = interpreter_->all.name_in(*file, function);
  return value.is(PythonValue::Kind::kFunction) ? interpreter_->call(value) : value;
}

const std::vector<std::string>& PythonProgram::undecided() const {
  return interpreter_->all.undecided();
}

}  // namespace sim
