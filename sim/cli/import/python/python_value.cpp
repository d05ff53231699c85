#include "sim/cli/import/python/python_value.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace sim {
namespace {

using estimator::Json;
using ValueKind = PythonValue::Kind;

constexpr std::size_t kMostPythonItems = 100'000;

PythonValue with_items(ValueKind kind) {
  return {.kind = kind, .items = std::make_shared<std::vector<PythonItem>>()};
}

std::optional<bool> all_equal(const PythonValue& left, const PythonValue& right) {
  if (left.items->size() != right.items->size()) return false;
  for (std::size_t i = 0; i < left.items->size(); ++i) {
    const auto equal = python_equal((*left.items)[i].value, (*right.items)[i].value);
    if (!equal || !*equal) return equal;
  }
  return true;
}

std::optional<bool> is_in(const PythonValue& value, const PythonValue& list) {
  if (list.is_text() && value.is_text())
    return list.as_text().find(value.as_text()) != std::string::npos;
  if (list.is(ValueKind::kDict)) return find_python_key(list, value) != nullptr;
  if (!list.is(ValueKind::kList)) return std::nullopt;
  bool is_known = true;
  for (const PythonItem& item : *list.items) {
    const auto equal = python_equal(item.value, value);
    if (equal.value_or(false)) return true;
    is_known = is_known && equal.has_value();
  }
  return is_known ? std::optional(false) : std::nullopt;
}

PythonValue of_truth(std::optional<bool> truth, bool is_turned, const std::string& sign) {
  return truth ? python_constant(*truth != is_turned) : python_unknown(sign);
}

PythonValue repeated(const PythonValue& list, int64_t times) {
  PythonValue whole = python_list({});
  const auto size = static_cast<int64_t>(list.items->size());
  if (times > 0 && size > 0 && times > static_cast<int64_t>(kMostPythonItems) / size)
    return python_unknown("*");
  for (int64_t i = 0; i < times; ++i)
    whole.items->insert(whole.items->end(), list.items->begin(), list.items->end());
  return whole;
}

PythonValue joined(const PythonValue& left, const PythonValue& right) {
  PythonValue whole = python_list({});
  *whole.items = *left.items;
  if (left.items->size() + right.items->size() > kMostPythonItems) return python_unknown("+");
  whole.items->insert(whole.items->end(), right.items->begin(), right.items->end());
  return whole;
}

std::optional<int64_t> of_whole_numbers(const std::string& sign, int64_t left, int64_t right) {
  int64_t result = 0;
  if (sign == "+" && !__builtin_add_overflow(left, right, &result)) return result;
  if (sign == "-" && !__builtin_sub_overflow(left, right, &result)) return result;
  if (sign == "*" && !__builtin_mul_overflow(left, right, &result)) return result;
  const bool divides = right > 0 && left >= 0;  // both round down
  if (sign == "//" && divides) return left / right;
  if (sign == "%" && divides) return left % right;
  constexpr int64_t kMostBits = 62;
  const bool is_power_of_two = left == 2 && right >= 0 && right <= kMostBits;
  if (sign == "**" && is_power_of_two) return int64_t{1} << right;
  return std::nullopt;
}

std::optional<double> of_numbers(const std::string& sign, double left, double right) {
  if (sign == "+") return left + right;
  if (sign == "-") return left - right;
  if (sign == "*") return left * right;
  if (sign == "/" && right != 0) return left / right;
  if (sign == "**") return std::pow(left, right);
  return std::nullopt;
}

std::optional<bool> compared(const std::string& sign, double left, double right) {
  if (sign == "<") return left < right;
  if (sign == ">") return left > right;
  if (sign == "<=") return left <= right;
  if (sign == ">=") return left >= right;
  return std::nullopt;
}

PythonValue of_constants(const std::string& sign, const Json& left, const Json& right) {
  if (left.is_string() && right.is_string() && sign == "+")
    return python_constant(left.get<std::string>() + right.get<std::string>());
  if (!left.is_number() || !right.is_number()) return python_unknown(sign);
  const auto [first, second] = std::pair(left.get<double>(), right.get<double>());
  if (const auto truth = compared(sign, first, second)) return python_constant(*truth);
  if (left.is_number_integer() && right.is_number_integer() && sign != "/") {
    const auto whole = of_whole_numbers(sign, left.get<int64_t>(), right.get<int64_t>());
    return whole ? python_constant(*whole) : python_unknown(sign);
  }
  const auto number = of_numbers(sign, first, second);
  return number ? python_constant(Json(*number)) : python_unknown(sign);
}

}  // namespace

bool PythonValue::is_none() const { return is(Kind::kConstant) && constant.json().is_null(); }
bool PythonValue::is_text() const { return is(Kind::kConstant) && constant.json().is_string(); }
std::string PythonValue::as_text() const {
  return is_text() ? constant.json().get<std::string>() : "";
}

PythonValue python_constant(estimator::JsonValue value) {
  return {.kind = ValueKind::kConstant, .constant = std::move(value)};
}
PythonValue python_symbol(std::string name) {
  return {.kind = ValueKind::kSymbol, .text = std::move(name)};
}
PythonValue python_unknown(std::string text) {
  return {.kind = ValueKind::kUnknown, .text = std::move(text)};
}
PythonValue python_dict() { return with_items(ValueKind::kDict); }

PythonValue python_object(std::string called) {
  PythonValue object = with_items(ValueKind::kObject);
  object.text = std::move(called);
  return object;
}

PythonValue python_list(std::vector<PythonValue> values) {
  PythonValue list = with_items(ValueKind::kList);
  for (PythonValue& value : values) list.items->push_back({.name = "", .value = std::move(value)});
  return list;
}

PythonItem* find_python_item(const PythonValue& value, std::string_view name) {
  if (!value.has_items()) return nullptr;
  const auto found = std::find_if(value.items->begin(),
                                  value.items->end(),
                                  [&](const PythonItem& item) { return item.name == name; });
  return found == value.items->end() ? nullptr : &*found;
}

PythonItem* find_python_key(const PythonValue& dict, const PythonValue& key) {
  if (!dict.is(ValueKind::kDict)) return nullptr;
  const auto found =
      std::find_if(dict.items->begin(), dict.items->end(), [&](const PythonItem& item) {
        return python_equal(item.key, key).value_or(false);
      });
  return found == dict.items->end() ? nullptr : &*found;
}

const PythonValue* python_argument(const PythonValue& object, std::size_t position) {
  const PythonItem* arguments = find_python_item(object, kPythonArguments);
  const bool has_it = arguments != nullptr && arguments->value.is(ValueKind::kList) &&
                      position < arguments->value.items->size();
  return has_it ? &(*arguments->value.items)[position].value : nullptr;
}

void set_python_item(const PythonValue& object,
                     std::string_view name,
                     PythonValue value,
                     std::string place) {
  if (!object.has_items()) return;
  PythonItem* item = find_python_item(object, name);
  if (item == nullptr)
    item = &object.items->emplace_back(PythonItem{.name = std::string(name), .value = {}});
  item->value = std::move(value);
  item->place = std::move(place);
  item->is_known = false;
}

PythonValue deep_python_copy(const PythonValue& value) {
  PythonValue copy = value;
  if (!value.has_items()) return copy;
  copy.items = std::make_shared<std::vector<PythonItem>>(*value.items);
  for (PythonItem& item : *copy.items) item.value = deep_python_copy(item.value);
  return copy;
}

bool is_python_result(const PythonValue& value) {
  const std::size_t name = value.text.rfind('.') + 1;  // 0 without a dot
  const auto first = static_cast<unsigned char>(name < value.text.size() ? value.text[name] : 'A');
  return value.is(ValueKind::kObject) && std::isupper(first) == 0;
}

std::optional<bool> python_truth(const PythonValue& value) {
  if (is_python_result(value)) return std::nullopt;
  switch (value.kind) {
    case ValueKind::kUnknown:
    case ValueKind::kSymbol:
      return std::nullopt;
    case ValueKind::kList:
    case ValueKind::kDict:
      return !value.items->empty();
    case ValueKind::kConstant:
      break;
    default:
      return true;
  }
  const Json& json = value.constant.json();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number()) return json.get<double>() != 0;
  return json.is_string() && !json.get<std::string>().empty();
}

std::optional<bool> python_equal(const PythonValue& left, const PythonValue& right) {
  if (left.is(ValueKind::kUnknown) || right.is(ValueKind::kUnknown)) return std::nullopt;
  if (left.has_items() && left.items == right.items) return true;
  if (is_python_result(left) || is_python_result(right)) return std::nullopt;
  if (left.is(ValueKind::kConstant) && right.is(ValueKind::kConstant))
    return left.constant == right.constant;
  if (left.is(ValueKind::kSymbol) && right.is(ValueKind::kSymbol) && left.text == right.text)
    return true;
  if (left.is_none() || right.is_none()) return false;
  if (left.is(ValueKind::kSymbol) || right.is(ValueKind::kSymbol)) return std::nullopt;
  if (left.is(ValueKind::kList) && right.is(ValueKind::kList)) return all_equal(left, right);
  return left.kind != right.kind ? std::optional(false) : std::nullopt;
}

PythonValue python_binary(const std::string& sign,
                          const PythonValue& left,
                          const PythonValue& right) {
  if (sign == "==" || sign == "!=") return of_truth(python_equal(left, right), sign == "!=", sign);
  if (sign == "in" || sign == "not in") return of_truth(is_in(left, right), sign == "not in", sign);
  if (left.is(ValueKind::kConstant) && right.is(ValueKind::kConstant))
    return of_constants(sign, left.constant.json(), right.constant.json());
  if (sign == "+" && left.is(ValueKind::kList) && right.is(ValueKind::kList))
    return joined(left, right);
  const bool repeats =
      sign == "*" && left.is(ValueKind::kList) && right.constant.json().is_number_integer();
  return repeats ? repeated(left, right.constant.json().get<int64_t>()) : python_unknown(sign);
}

}  // namespace sim
