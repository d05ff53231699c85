#include "sim/cli/input/flag_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "sim/cli/values/plan_flag_table.h"

namespace sim {
namespace {

const std::vector<std::string> kWorldSizeNames = {kWorldSizeFlag, "--num-gpus", "--world-size"};

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
std::string typed_name(const std::vector<std::string>& names,
                       const std::string& short_name,
                       const std::vector<std::string>& arguments) {
  for (const std::string& name : names) {
    const auto is_it = [&](const std::string& argument) { return is_flag(argument, name); };
    if (std::any_of(arguments.begin(), arguments.end(), is_it)) return name;
  }
  return short_name;
}

void replace_in_all(std::vector<estimator::Problem>& problems,
                    const std::string& name,
                    const std::string& with) {
  if (name == with) return;
  for (estimator::Problem& problem : problems) {
    for (std::string* text : {&problem.what, &problem.where, &problem.help}) {
      replace_name(*text, name, with);
    }
  }
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
      const std::string name = flag.short_name();
      replace_in_all(problems, name, typed_name(flag.said.names, name, arguments));
    }
  }
  replace_in_all(problems, kWorldSizeFlag, typed_name(kWorldSizeNames, kWorldSizeFlag, arguments));
  return problems;
}

}  // namespace sim
