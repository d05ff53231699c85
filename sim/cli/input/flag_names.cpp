#include "sim/cli/input/flag_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "sim/cli/values/plan_flag_table.h"

namespace sim {
namespace {

bool is_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("_.-").find(letter) != std::string_view::npos;
}

/// Whether `argument` is the flag, alone or as "--tp=2".
bool is_flag(std::string_view argument, const std::string& name) {
  return argument.starts_with(name) &&
         (argument.size() == name.size() || argument[name.size()] == '=');
}

/// The name of the flag that stands in the arguments, or its short one.
std::string typed_name(const PlanFlag& flag, const std::vector<std::string>& arguments) {
  for (const std::string& name : flag.said.names) {
    const auto is_it = [&](const std::string& argument) { return is_flag(argument, name); };
    if (std::any_of(arguments.begin(), arguments.end(), is_it)) return name;
  }
  return flag.short_name();
}

}  // namespace

void replace_name(std::string& text, const std::string& name, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
    const std::size_t end = at + name.size();
    const bool whole =
        (at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end]));
    if (whole) text.replace(at, name.size(), with);
    at += whole ? with.size() : name.size();
  }
}

std::vector<estimator::Problem> as_typed(std::vector<estimator::Problem> problems,
                                         const std::vector<std::string>& arguments) {
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      const std::string typed = typed_name(flag, arguments);
      if (typed == flag.short_name()) continue;
      for (estimator::Problem& problem : problems) {
        for (std::string* text : {&problem.what, &problem.where, &problem.help}) {
          replace_name(*text, flag.short_name(), typed);
        }
      }
    }
  }
  return problems;
}

}  // namespace sim
