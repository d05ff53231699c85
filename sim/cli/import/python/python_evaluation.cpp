#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "estimator/base/contains.h"
#include "estimator/base/errors.h"
#include "sim/cli/import/python/python_interpreter.h"

namespace sim {
namespace {

using ExpressionKind = PythonExpression::Kind;
using ValueKind = PythonValue::Kind;

/// "a.b" as it is written.
std::string dotted(const PythonExpression& expression) {
  if (expression.kind != ExpressionKind::kAttribute) return expression.text;
  return dotted(expression.parts[0]) + "." + expression.text;
}

}  // namespace

/// An imported value by its definition in the other file, or by its name where there is no file.
PythonValue PythonInterpreter::resolved(const PythonValue& imported) {
  const std::size_t colon = imported.text.find(':');
  const std::string module = imported.text.substr(0, colon);
  const std::string name = imported.text.substr(colon + 1);
  std::string symbol = name.empty() ? module : module + "." + name;
  symbol.erase(0, std::min(symbol.find_first_not_of('.'), symbol.size()));
  const PythonDepth depth(depth_);
  if (name.empty() || depth.is_too_deep()) return python_symbol(symbol);
  PythonModule* file = find_module(imported.module->path, module);
  PythonValue value = file == nullptr ? python_symbol(symbol) : name_in(*file, name);
  return value.is(ValueKind::kUnknown) ? python_symbol(symbol) : value;
}

PythonValue PythonInterpreter::evaluate(const PythonExpression& expression, Scope& scope) {
  count_step(scope, expression.line);
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return python_constant(expression.constant);
    case ExpressionKind::kName:
      return evaluate_name(expression.text, scope);
    case ExpressionKind::kAttribute:
      return evaluate_attribute(expression, scope);
    case ExpressionKind::kIndex:
      return evaluate_index(expression, scope);
    case ExpressionKind::kCall:
      return evaluate_call(expression, scope);
    case ExpressionKind::kDict:
      return evaluate_dict(expression, scope);
    case ExpressionKind::kUnary:
      return evaluate_unary(expression, scope);
    case ExpressionKind::kBinary:
      return evaluate_binary(expression, scope);
    case ExpressionKind::kChoice:
      return evaluate_choice(expression, scope);
    case ExpressionKind::kEach:
      return evaluate_each(expression, scope);
    case ExpressionKind::kList:
      break;
    case ExpressionKind::kOther:
      return python_unknown("an expression at " + place_of(scope, expression.line));
  }
  std::vector<PythonValue> values;
  for (const PythonExpression& part : expression.parts) values.push_back(evaluate(part, scope));
  return python_list(std::move(values));
}

PythonValue PythonInterpreter::evaluate_name(const std::string& name, Scope& scope) {
  const auto found = scope.names.find(name);
  if (found == scope.names.end()) {
    PythonValue global = name_in(scope.module, name);
    return global.is(ValueKind::kUnknown) && global.text == name ? python_symbol(name) : global;
  }
  if (found->second.is(ValueKind::kImported)) found->second = resolved(found->second);
  return found->second;
}

PythonValue PythonInterpreter::evaluate_attribute(const PythonExpression& expression,
                                                  Scope& scope) {
  const PythonValue of = evaluate(expression.parts[0], scope);
  if (of.is(ValueKind::kObject)) {
    const PythonItem* item = find_python_item(of, expression.text);
    return item == nullptr ? python_unknown(dotted(expression)) : item->value;
  }
  const bool is_named = of.is(ValueKind::kSymbol) || of.is(ValueKind::kClass);
  return is_named ? python_symbol(of.text + "." + expression.text)
                  : python_unknown(dotted(expression));
}

PythonValue PythonInterpreter::evaluate_index(const PythonExpression& expression, Scope& scope) {
  const PythonValue of = evaluate(expression.parts[0], scope);
  const PythonValue key = evaluate(expression.parts[1], scope);
  const PythonItem* item = find_python_key(of, key);
  if (item != nullptr) return item->value;
  if (!of.is(ValueKind::kList) || !key.constant.json().is_number_integer())
    return python_unknown(dotted(expression.parts[0]));
  const auto size = static_cast<int64_t>(of.items->size());
  const auto at = key.constant.json().get<int64_t>();
  const int64_t from_begin = at < 0 ? size + at : at;
  if (from_begin < 0 || from_begin >= size) return python_unknown(dotted(expression.parts[0]));
  return (*of.items)[static_cast<std::size_t>(from_begin)].value;
}

PythonValue PythonInterpreter::evaluate_dict(const PythonExpression& expression, Scope& scope) {
  PythonValue dict = python_dict();
  const auto add = [&](const PythonValue& key, PythonValue value, int line) {
    PythonItem* item = find_python_key(dict, key);
    if (item == nullptr)
      item = &dict.items->emplace_back(PythonItem{.name = key.as_text(), .value = {}, .key = key});
    item->value = std::move(value);
    item->place = place_of(scope, line);
  };
  for (std::size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    const PythonValue value = evaluate(expression.parts[i + 1], scope);
    if (expression.words[i / 2] != "**") {
      add(evaluate(expression.parts[i], scope), value, expression.parts[i].line);
    } else if (value.is(ValueKind::kDict)) {
      for (const PythonItem& item : *value.items)
        add(item.key, item.value, expression.parts[i + 1].line);
    }
  }
  return dict;
}

PythonValue PythonInterpreter::evaluate_unary(const PythonExpression& expression, Scope& scope) {
  const PythonValue value = evaluate(expression.parts[0], scope);
  if (expression.text == "not") {
    const auto truth = python_truth(value);
    return truth ? python_constant(!*truth) : python_unknown("not");
  }
  if (expression.text == "-") return python_binary("-", python_constant(0), value);
  return expression.text == "+" ? value : python_unknown(expression.text);
}

PythonValue PythonInterpreter::evaluate_binary(const PythonExpression& expression, Scope& scope) {
  const PythonValue left = evaluate(expression.parts[0], scope);
  const bool is_and = expression.text == "and";
  if (!is_and && expression.text != "or") {
    return python_binary(expression.text, left, evaluate(expression.parts[1], scope));
  }
  const auto truth = python_truth(left);
  if (truth) return *truth == is_and ? evaluate(expression.parts[1], scope) : left;
  const auto second = python_truth(evaluate(expression.parts[1], scope));
  const bool decides = second.has_value() && *second != is_and;
  return decides ? python_constant(*second) : python_unknown(expression.text);
}

PythonValue PythonInterpreter::evaluate_choice(const PythonExpression& expression, Scope& scope) {
  const auto truth = python_truth(evaluate(expression.parts[1], scope));
  if (!truth) return python_unknown("if");
  return evaluate(expression.parts[*truth ? 0 : 2], scope);
}

PythonValue PythonInterpreter::evaluate_each(const PythonExpression& expression, Scope& scope) {
  const PythonValue list = evaluate(expression.parts[2], scope);
  const bool is_read = list.is(ValueKind::kList) && expression.parts.size() == 3;
  if (!is_read) return python_unknown("for");
  std::map<std::string, PythonValue> names = scope.names;
  Scope inner{.module = scope.module, .names = names};
  std::vector<PythonValue> values;
  for (const PythonItem& item : *list.items) {
    assign(expression.parts[1], item.value, inner);
    values.push_back(evaluate(expression.parts[0], inner));
  }
  return python_list(std::move(values));
}

PythonCall PythonInterpreter::arguments_of(const PythonExpression& expression, Scope& scope) {
  PythonCall call = {.place = place_of(scope, expression.line)};
  for (std::size_t i = 0; i < expression.words.size(); ++i) {
    PythonValue value = evaluate(expression.parts[i + 1], scope);
    const std::string& word = expression.words[i];
    if (word.empty()) {
      call.positional.push_back(std::move(value));
    } else if (word != "*" && word != "**") {
      call.named.emplace_back(word, std::move(value));
    } else if (word == "**" && value.is(ValueKind::kDict)) {
      for (const PythonItem& item : *value.items) call.named.emplace_back(item.name, item.value);
    }
  }
  return call;
}

PythonValue PythonInterpreter::evaluate_call(const PythonExpression& expression, Scope& scope) {
  const PythonExpression& callee = expression.parts[0];
  const PythonCall arguments = arguments_of(expression, scope);
  if (callee.kind != ExpressionKind::kAttribute) return call(evaluate(callee, scope), arguments);
  const PythonValue receiver = evaluate(callee.parts[0], scope);
  if (auto value = call_python_method(receiver, callee.text, arguments)) return *value;
  if (!receiver.is(ValueKind::kObject)) return call(evaluate(callee, scope), arguments);
  return recorded(receiver.text + "." + callee.text, arguments, &receiver);
}

PythonValue PythonInterpreter::call(const PythonValue& callee, const PythonCall& call) {
  const bool is_followed =
      !estimator::contains(reading_.not_followed, callee.text.substr(callee.text.rfind('.') + 1));
  if (is_followed && callee.is(ValueKind::kFunction)) return call_function(callee, call);
  if (callee.is(ValueKind::kClass)) return make_object(callee, call);
  if (callee.is(ValueKind::kSymbol)) {
    if (auto value = call_python_builtin(callee.text, call)) return *value;
  }
  return recorded(callee.text, call, nullptr);
}

PythonValue PythonInterpreter::call_function(const PythonValue& function, const PythonCall& call) {
  const PythonDepth depth(depth_);
  if (depth.is_too_deep()) {
    throw estimator::UserError({.what = "functions of a Python file call each other too deeply",
                                .where = fmt::format("{}: {}", call.place, function.text),
                                .help = "give a file whose functions say values"});
  }
  std::map<std::string, PythonValue> names;
  Scope of_module{.module = *function.module, .names = function.module->names};
  std::size_t position = 0;
  for (const PythonParameter& parameter : function.definition->parameters) {
    const PythonValue* given =
        parameter.takes_all ? nullptr : call.argument(parameter.name, position++);
    PythonValue& value = names[parameter.name];
    if (given != nullptr)
      value = *given;
    else if (!parameter.otherwise.empty())
      value = evaluate(parameter.otherwise[0], of_module);
    else
      value = python_unknown(parameter.name);
  }
  Scope scope{.module = *function.module, .names = names};
  execute(function.definition->body, scope);
  return scope.result.value_or(scope.is_undecided ? python_unknown(function.text)
                                                  : python_constant(estimator::JsonValue()));
}

/// The fields of a class and of those it derives from, with their defaults.
void PythonInterpreter::add_fields(const PythonValue& of_class, const PythonValue& object) {
  const PythonDepth depth(depth_);
  if (depth.is_too_deep()) return;
  Scope scope{.module = *of_class.module, .names = of_class.module->names};
  for (const PythonExpression& base : of_class.definition->expressions) {
    const PythonValue value = evaluate(base, scope);
    if (value.is(ValueKind::kClass)) add_fields(value, object);
  }
  for (const PythonStatement& field : of_class.definition->body) {
    const bool has_default = field.kind == PythonStatement::Kind::kAssign &&
                             field.expressions[0].kind == ExpressionKind::kName;
    if (!has_default) continue;
    PythonValue value = evaluate(field.expressions.back(), scope);
    if (value.is(ValueKind::kObject)) value = python_unknown(field.expressions[0].text);
    set_python_item(
        object, field.expressions[0].text, std::move(value), place_of(scope, field.line));
    find_python_item(object, field.expressions[0].text)->is_known = true;
  }
}

PythonValue PythonInterpreter::make_object(const PythonValue& of_class, const PythonCall& call) {
  PythonValue object = python_object(of_class.text);
  name_in(*of_class.module, "");  // its names are those of an executed module
  add_fields(of_class, object);
  for (const auto& [name, value] : call.named) set_python_item(object, name, value, call.place);
  if (!call.positional.empty())
    set_python_item(object, kPythonArguments, python_list(call.positional), call.place);
  if (reading_.on_object) reading_.on_object(object);
  return object;
}

/// An object in place of what a call gives that is not followed. A method's keeps the arguments of
/// the call that gave its receiver.
PythonValue PythonInterpreter::recorded(const std::string& called,
                                        const PythonCall& call,
                                        const PythonValue* receiver) {
  PythonValue object = python_object(called);
  const PythonItem* before =
      receiver == nullptr ? nullptr : find_python_item(*receiver, kPythonArguments);
  if (before != nullptr)
    set_python_item(object, kPythonArguments, before->value, before->place);
  else if (!call.positional.empty())
    set_python_item(object, kPythonArguments, python_list(call.positional), call.place);
  for (const auto& [name, value] : call.named) set_python_item(object, name, value, call.place);
  if (reading_.on_object) reading_.on_object(object);
  return object;
}

}  // namespace sim
