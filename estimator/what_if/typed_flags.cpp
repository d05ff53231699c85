#include "estimator/what_if/typed_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "estimator/plan/option_table.h"

namespace estimator {
namespace {

std::string in_quotes_if_needed(const std::string& word) {
  const bool plain = word.find_first_of(" '\"[]{}()*?$&|;<>\\") == std::string::npos;
  return plain ? word : "'" + word + "'";
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  if (value.empty()) return "even";  // layers_per_stage
  std::vector<std::string> fields;
  for (const Json& field : value) fields.push_back(value_text(field));
  return fmt::format("{}", fmt::join(fields, ","));
}

/// What to type to make this flag write the value, or "" when it cannot.
std::string typed(const OptionFlag& flag, const Json& value) {
  const std::string& name = flag.names.back();
  if (flag.constant.empty()) return name + " " + in_quotes_if_needed(value_text(value));
  const Json constant = Json::parse(flag.constant);
  if (value == constant) return name;
  const bool turns_off = constant.is_boolean() && value.is_boolean();
  return turns_off ? name + "=false" : "";
}

std::string flag_to_type(const PlanEdit& edit) {
  if (const PlanOption* option = find_plan_option(edit.path)) {
    for (const OptionFlag& flag : option->flags) {
      std::string text = typed(flag, edit.value);
      if (!text.empty()) return text;
    }
  }
  return "--set " + in_quotes_if_needed(edit.path + "=" + edit.value.dump());
}

}  // namespace

std::string flags_to_type(const PlanEdits& edits) {
  std::vector<std::string> flags;
  for (const PlanEdit& edit : edits) flags.push_back(flag_to_type(edit));
  return fmt::format("{}", fmt::join(flags, " "));
}

}  // namespace estimator
