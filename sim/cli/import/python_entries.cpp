#include "sim/cli/import/python_entries.h"

#include "estimator/base/json.h"
#include "sim/cli/import/key_table.h"
#include "sim/cli/import/tree_entries.h"

namespace sim {
namespace {

using ValueKind = PythonValue::Kind;

SourceEntry entry_of(const std::string& key, const PythonItem& item, const std::string& origin) {
  SourceEntry entry = {
      .key = normal_key(key), .values = {}, .place = item.place.empty() ? origin : item.place};
  entry.as_written = key;
  return entry;
}

void add_value(const std::string& key,
               const PythonItem& item,
               const std::string& origin,
               std::vector<SourceEntry>& entries) {
  SourceEntry entry = entry_of(key, item, origin);
  const PythonValue& value = item.value;
  if (value.is(ValueKind::kList)) {
    for (const PythonItem& each : *value.items) entry.values.push_back(python_text(each.value));
  } else if (value.is(ValueKind::kUnknown) || is_python_result(value)) {
    entry.is_unknown = true;
    entry.values = {value.text};
  } else if (!value.is_none()) {
    entry.values = {python_text(value)};
  }
  entry.is_null = entry.values.empty();
  entries.push_back(std::move(entry));
}

void add_fields(const PythonValue& object,
                const std::string& prefix,
                const std::string& origin,
                std::vector<SourceEntry>& entries) {
  const bool is_section = !prefix.empty();
  for (const PythonItem& item : *object.items) {
    if (item.is_known || item.name.empty()) continue;
    const bool has_fields = item.value.is(ValueKind::kObject) || item.value.is(ValueKind::kDict);
    if (is_section || !has_fields) {
      add_value(prefix + item.name, item, origin, entries);
      continue;
    }
    add_fields(item.value, item.name + ".", origin, entries);
    if (!item.value.is(ValueKind::kObject)) continue;
    PythonItem of_class = {
        .name = kPythonClass, .value = python_constant(item.value.text), .place = item.place};
    add_value(item.name + "." + kPythonClass, of_class, origin, entries);
  }
}

}  // namespace

std::string python_text(const PythonValue& value) {
  if (value.is(ValueKind::kConstant)) return scalar_text(value.constant.json());
  const bool has_name = value.is(ValueKind::kSymbol) || value.is(ValueKind::kObject) ||
                        value.is(ValueKind::kFunction) || value.is(ValueKind::kClass);
  return has_name ? value.text.substr(value.text.rfind('.') + 1) : "";
}

std::vector<SourceEntry> entries_of_python(const PythonValue& object, const std::string& origin) {
  std::vector<SourceEntry> entries;
  if (object.has_items()) add_fields(object, "", origin, entries);
  return entries;
}

}  // namespace sim
