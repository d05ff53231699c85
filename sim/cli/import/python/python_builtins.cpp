// Functions of Python's own, and methods of its lists, dicts and texts.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include "estimator/base/text.h"
#include "sim/cli/import/python/python_interpreter.h"

namespace sim {
namespace {

using estimator::Json;
using ValueKind = PythonValue::Kind;

const PythonValue* first_of(const PythonCall& call) {
  return call.positional.empty() ? nullptr : &call.positional.front();
}

PythonValue unknown_of(const char* name) { return python_unknown(name); }

PythonValue get_attribute(const PythonCall& call) {
  if (call.positional.size() < 2) return unknown_of("getattr");
  const PythonItem* item = find_python_item(call.positional[0], call.positional[1].as_text());
  return item == nullptr ? unknown_of("getattr") : item->value;
}

PythonValue has_attribute(const PythonCall& call) {
  if (call.positional.size() < 2) return unknown_of("hasattr");
  const bool has = find_python_item(call.positional[0], call.positional[1].as_text()) != nullptr;
  return has ? python_constant(true) : unknown_of("hasattr");
}

PythonValue set_attribute(const PythonCall& call) {
  if (call.positional.size() > 2)
    set_python_item(
        call.positional[0], call.positional[1].as_text(), call.positional[2], call.place);
  return python_constant(estimator::JsonValue());
}

/// Whether a value is of a type of Python's own; nothing where the type is another.
std::optional<bool> is_of_type(const PythonValue& value, const PythonValue& type) {
  if (value.is(ValueKind::kUnknown) || value.is(ValueKind::kSymbol)) return std::nullopt;
  const Json& json = value.constant.json();
  const bool is_constant = value.is(ValueKind::kConstant);
  if (type.text == "str") return is_constant && json.is_string();
  if (type.text == "int") return is_constant && (json.is_number_integer() || json.is_boolean());
  if (type.text == "bool") return is_constant && json.is_boolean();
  if (type.text == "float") return is_constant && json.is_number_float();
  if (type.text == "list" || type.text == "tuple") return value.is(ValueKind::kList);
  if (type.text == "dict") return value.is(ValueKind::kDict);
  if (!type.is(ValueKind::kClass)) return std::nullopt;
  if (is_constant) return false;
  const bool is_same = value.is(ValueKind::kObject) && value.text == type.text;
  return is_same ? std::optional(true) : std::nullopt;  // its class may derive from the type
}

PythonValue is_instance(const PythonCall& call) {
  if (call.positional.size() != 2) return unknown_of("isinstance");
  const auto is = is_of_type(call.positional[0], call.positional[1]);
  return is ? python_constant(*is) : unknown_of("isinstance");
}

PythonValue length(const PythonCall& call) {
  const PythonValue* of = first_of(call);
  if (of != nullptr && (of->is(ValueKind::kList) || of->is(ValueKind::kDict)))
    return python_constant(static_cast<int64_t>(of->items->size()));
  return of != nullptr && of->is_text()
             ? python_constant(static_cast<int64_t>(of->as_text().size()))
             : unknown_of("len");
}

PythonValue copied_list(const PythonCall& call) {
  const PythonValue* of = first_of(call);
  if (of == nullptr) return python_list({});
  if (!of->is(ValueKind::kList)) return unknown_of("list");
  PythonValue copy = python_list({});
  *copy.items = *of->items;
  return copy;
}

PythonValue range(const PythonCall& call) {
  constexpr int64_t kMost = 100'000;
  const PythonValue* end = first_of(call);
  const bool is_read =
      end != nullptr && call.positional.size() == 1 && end->constant.json().is_number_integer();
  if (!is_read || end->constant.json().get<int64_t>() > kMost) return unknown_of("range");
  std::vector<PythonValue> values;
  for (int64_t i = 0; i < end->constant.json().get<int64_t>(); ++i)
    values.push_back(python_constant(i));
  return python_list(std::move(values));
}

PythonValue as_text(const PythonCall& call) {
  const PythonValue* of = first_of(call);
  return of != nullptr && of->is_text() ? *of : unknown_of("str");
}

PythonValue as_whole(const PythonCall& call) {
  const PythonValue* of = first_of(call);
  return of != nullptr && of->constant.json().is_number_integer() ? *of : unknown_of("int");
}

PythonValue as_number(const PythonCall& call) {
  const PythonValue* of = first_of(call);
  return of != nullptr && of->constant.json().is_number() ? *of : unknown_of("float");
}

/// The argument for which the sign to each other holds: max for ">", min for "<".
PythonValue extreme(const PythonCall& call, const char* sign) {
  const PythonValue* best = first_of(call);
  if (best == nullptr || !best->constant.json().is_number()) return unknown_of(sign);
  for (const PythonValue& value : call.positional) {
    const auto is_better = python_truth(python_binary(sign, value, *best));
    if (!value.constant.json().is_number() || !is_better) return unknown_of(sign);
    if (*is_better) best = &value;
  }
  return *best;
}
PythonValue largest(const PythonCall& call) { return extreme(call, ">"); }
PythonValue smallest(const PythonCall& call) { return extreme(call, "<"); }

PythonValue made_dict(const PythonCall& call) {
  PythonValue dict = python_dict();
  for (const auto& [name, value] : call.named)
    dict.items->push_back(
        {.name = name, .value = value, .place = call.place, .key = python_constant(name)});
  return call.positional.empty() ? dict : unknown_of("dict");
}

PythonValue deep_copy(const PythonCall& call) {
  const PythonValue* of = first_of(call);
  return of == nullptr ? unknown_of("deepcopy") : deep_python_copy(*of);
}

/// dataclasses.replace(BASE, name=value): a copy of the fields, which still hold the same values.
PythonValue replaced(const PythonCall& call) {
  const PythonValue* of = first_of(call);
  if (of == nullptr || !of->is(ValueKind::kObject)) return unknown_of("replace");
  PythonValue copy = *of;
  copy.items = std::make_shared<std::vector<PythonItem>>(*of->items);
  for (const auto& [name, value] : call.named) set_python_item(copy, name, value, call.place);
  return copy;
}

using Function = PythonValue (*)(const PythonCall&);

constexpr std::pair<std::string_view, Function> kFunctions[] = {
    {"getattr", get_attribute},
    {"hasattr", has_attribute},
    {"setattr", set_attribute},
    {"isinstance", is_instance},
    {"len", length},
    {"list", copied_list},
    {"tuple", copied_list},
    {"range", range},
    {"str", as_text},
    {"int", as_whole},
    {"float", as_number},
    {"max", largest},
    {"min", smallest},
    {"dict", made_dict},
    {"copy.deepcopy", deep_copy},
    {"dataclasses.replace", replaced},
};

}  // namespace

const PythonValue* PythonCall::argument(const std::string& name, std::size_t position) const {
  const auto found = std::find_if(
      named.begin(), named.end(), [&](const auto& pair) { return pair.first == name; });
  if (found != named.end()) return &found->second;
  return position < positional.size() ? &positional[position] : nullptr;
}

std::optional<PythonValue> call_python_builtin(const std::string& name, const PythonCall& call) {
  const auto* found = std::find_if(std::begin(kFunctions),
                                   std::end(kFunctions),
                                   [&](const auto& known) { return known.first == name; });
  return found == std::end(kFunctions) ? std::nullopt : std::optional(found->second(call));
}

std::optional<PythonValue> call_python_method(const PythonValue& value,
                                              const std::string& method,
                                              const PythonCall& call) {
  const PythonValue* argument = first_of(call);
  if (value.is_text() && method == "lower")
    return python_constant(estimator::lower_case(value.as_text()));
  if (value.is(ValueKind::kList) && method == "append" && argument != nullptr) {
    value.items->push_back({.name = "", .value = *argument});
    return python_constant(estimator::JsonValue());
  }
  if (!value.is(ValueKind::kDict) || method != "get" || argument == nullptr) return std::nullopt;
  if (const PythonItem* item = find_python_key(value, *argument)) return item->value;
  return call.positional.size() > 1 ? call.positional[1] : python_constant(estimator::JsonValue());
}

}  // namespace sim
