#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "estimator/base/errors.h"
#include "sim/cli/import/python/python_interpreter.h"

namespace sim {
namespace {

using StatementKind = PythonStatement::Kind;
using ValueKind = PythonValue::Kind;

constexpr int64_t kMostSteps = 1'000'000;

bool may_return(const std::vector<PythonStatement>& statements) {
  return std::any_of(statements.begin(), statements.end(), [](const PythonStatement& statement) {
    const bool is_function =
        statement.kind == StatementKind::kFunction || statement.kind == StatementKind::kClass;
    if (is_function) return false;
    return statement.kind == StatementKind::kReturn || may_return(statement.body) ||
           may_return(statement.otherwise);
  });
}

}  // namespace

std::string PythonInterpreter::place_of(const Scope& scope, int line) {
  return fmt::format("{}:{}", scope.module.origin, line);
}

void PythonInterpreter::count_step(const Scope& scope, int line) {
  if (++steps_ <= kMostSteps) return;
  throw estimator::UserError(
      {.what = "a Python file does too much to be read",
       .where = fmt::format("{}, after {} steps", place_of(scope, line), kMostSteps),
       .help = "give a file whose functions say values"});
}

PythonModule& PythonInterpreter::load(PythonFile file, const std::string& name) {
  const auto known =
      std::find_if(modules_.begin(), modules_.end(), [&](const PythonModule& module) {
        return module.path == file.path;
      });
  if (known != modules_.end()) return *known;
  const std::string origin = std::filesystem::path(file.path).filename().string();
  return modules_.emplace_back(PythonModule{.path = std::move(file.path),
                                            .origin = origin,
                                            .name = name,
                                            .statements = read_python(file.text, origin)});
}

PythonModule* PythonInterpreter::find_module(const std::string& path, const std::string& module) {
  if (!reading_.find) return nullptr;
  const std::size_t dots = std::min(module.find_first_not_of('.'), module.size());
  try {
    auto file = reading_.find(path, module);
    return file ? &load(std::move(*file), module.substr(dots)) : nullptr;
  } catch (const estimator::UserError&) {
    return nullptr;  // its names are known by their names alone
  }
}

PythonValue PythonInterpreter::name_in(PythonModule& module, const std::string& name) {
  if (!module.is_executed) {
    module.is_executed = true;
    Scope scope{.module = module, .names = module.names};
    try {
      execute(module.statements, scope);
    } catch (const PythonRaised&) {
      // What comes before it is known.
    }
  }
  const auto found = module.names.find(name);
  if (found == module.names.end()) return python_unknown(name);
  if (found->second.is(ValueKind::kImported)) found->second = resolved(found->second);
  return found->second;
}

void PythonInterpreter::execute(const std::vector<PythonStatement>& statements, Scope& scope) {
  for (const PythonStatement& statement : statements) {
    if (scope.result) return;
    count_step(scope, statement.line);
    if (scope.is_undecided) {
      forget(statement, scope);
    } else {
      execute(statement, scope);
    }
  }
}

void PythonInterpreter::execute(const PythonStatement& statement, Scope& scope) {
  const auto value_of = [&](std::size_t i) { return evaluate(statement.expressions[i], scope); };
  switch (statement.kind) {
    case StatementKind::kExpression:
      value_of(0);
      break;
    case StatementKind::kAssign: {
      const PythonValue value = evaluate(statement.expressions.back(), scope);
      for (std::size_t i = 0; i + 1 < statement.expressions.size(); ++i)
        assign(statement.expressions[i], value, scope);
      break;
    }
    case StatementKind::kAddTo:
      assign(
          statement.expressions[0], python_binary(statement.text, value_of(0), value_of(1)), scope);
      break;
    case StatementKind::kReturn:
      scope.result =
          statement.expressions.empty() ? python_constant(estimator::JsonValue()) : value_of(0);
      break;
    case StatementKind::kIf:
      execute_if(statement, scope);
      break;
    case StatementKind::kFor:
      execute_for(statement, scope);
      break;
    case StatementKind::kTry:
      execute_try(statement, scope);
      break;
    case StatementKind::kRaise:
      throw PythonRaised{place_of(scope, statement.line)};
    case StatementKind::kOther:
      forget(statement, scope);
      break;
    default:
      bind(statement, scope);
  }
}

void PythonInterpreter::bind(const PythonStatement& statement, Scope& scope) {
  if (statement.kind != StatementKind::kImport) {
    const bool is_class = statement.kind == StatementKind::kClass;
    scope.names[statement.text] = {.kind = is_class ? ValueKind::kClass : ValueKind::kFunction,
                                   .text = scope.module.name + "." + statement.text,
                                   .definition = &statement,
                                   .module = &scope.module};
    return;
  }
  for (const PythonImport& import : statement.imports) {
    scope.names[import.as_name] = {.kind = ValueKind::kImported,
                                   .text = import.module + ":" + import.name,
                                   .module = &scope.module};
  }
}

void PythonInterpreter::execute_if(const PythonStatement& statement, Scope& scope) {
  const auto truth = python_truth(evaluate(statement.expressions[0], scope));
  if (truth) return execute(*truth ? statement.body : statement.otherwise, scope);
  forget(statement, scope);
  scope.is_undecided = may_return(statement.body) || may_return(statement.otherwise);
}

void PythonInterpreter::execute_for(const PythonStatement& statement, Scope& scope) {
  const PythonValue list = evaluate(statement.expressions[0], scope);
  if (!list.is(ValueKind::kList)) return forget(statement, scope);
  const std::vector<PythonItem> items = *list.items;
  for (const PythonItem& item : items) {
    scope.names[statement.text] = item.value;
    execute(statement.body, scope);
  }
}

void PythonInterpreter::execute_try(const PythonStatement& statement, Scope& scope) {
  try {
    execute(statement.body, scope);
  } catch (const PythonRaised&) {
    execute(statement.otherwise, scope);
  }
}

/// What holds the fields of `target`; what nobody knows becomes an object.
PythonValue PythonInterpreter::holder_of(const PythonExpression& target, Scope& scope) {
  PythonValue holder = evaluate(target, scope);
  const bool may_hold = holder.has_items() || holder.is(ValueKind::kConstant);
  const bool is_place = target.kind == PythonExpression::Kind::kName ||
                        target.kind == PythonExpression::Kind::kAttribute;
  if (may_hold || !is_place) return holder;
  holder = python_object(holder.text);
  assign(target, holder, scope);
  return holder;
}

void PythonInterpreter::assign(const PythonExpression& target, PythonValue value, Scope& scope) {
  switch (target.kind) {
    case PythonExpression::Kind::kName:
      scope.names[target.text] = std::move(value);
      break;
    case PythonExpression::Kind::kAttribute:
      set_python_item(holder_of(target.parts[0], scope),
                      target.text,
                      std::move(value),
                      place_of(scope, target.line));
      break;
    case PythonExpression::Kind::kIndex: {
      const PythonValue dict = evaluate(target.parts[0], scope);
      const PythonValue key = evaluate(target.parts[1], scope);
      if (PythonItem* item = find_python_key(dict, key)) {
        item->value = std::move(value);
      } else if (dict.is(ValueKind::kDict)) {
        dict.items->push_back({.name = key.as_text(),
                               .value = std::move(value),
                               .place = place_of(scope, target.line),
                               .key = key});
      }
      break;
    }
    case PythonExpression::Kind::kList:
      assign_each(target, value, scope);
      break;
    default:
      break;
  }
}

void PythonInterpreter::assign_each(const PythonExpression& targets,
                                    const PythonValue& value,
                                    Scope& scope) {
  const bool fits = value.is(ValueKind::kList) && value.items->size() == targets.parts.size();
  for (std::size_t i = 0; i < targets.parts.size(); ++i) {
    assign(targets.parts[i],
           fits ? (*value.items)[i].value : python_unknown(targets.parts[i].text),
           scope);
  }
}

void PythonInterpreter::forget(const std::vector<PythonStatement>& statements, Scope& scope) {
  for (const PythonStatement& statement : statements) forget(statement, scope);
}

/// What the statement assigns is unknown from here on, since nobody knows whether it is reached.
void PythonInterpreter::forget(const PythonStatement& statement, Scope& scope) {
  const std::string place = place_of(scope, statement.line);
  const bool assigns =
      statement.kind == StatementKind::kAssign || statement.kind == StatementKind::kAddTo;
  for (std::size_t i = 0; assigns && i + 1 < statement.expressions.size(); ++i)
    assign(statement.expressions[i], python_unknown("a value at " + place), scope);
  const bool calls = statement.kind == StatementKind::kExpression &&
                     statement.expressions[0].kind == PythonExpression::Kind::kCall;
  if (calls) undecided_.push_back(place);
  if (statement.kind == StatementKind::kReturn) scope.is_undecided = true;
  if (statement.kind == StatementKind::kFor)
    scope.names[statement.text] = python_unknown(statement.text);
  if (statement.kind == StatementKind::kFunction || statement.kind == StatementKind::kClass)
    return bind(statement, scope);
  if (statement.kind == StatementKind::kImport) return bind(statement, scope);
  forget(statement.body, scope);
  forget(statement.otherwise, scope);
}

}  // namespace sim
