#include "sim/cli/import/python_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/base/contains.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/glob.h"

namespace sim {

std::string chosen_function(const std::vector<std::string>& functions,
                            const std::string& pattern,
                            const std::string& wanted,
                            const std::string& origin) {
  if (estimator::contains(functions, wanted)) return wanted;
  std::vector<std::string> known;
  for (const std::string& function : functions) {
    if (!function.starts_with('_') && estimator::matches_glob(function, pattern))
      known.push_back(function);
  }
  if (wanted.empty() && known.size() == 1) return known.front();
  if (known.empty()) {
    throw estimator::UserError(
        {.what = origin + " has no function that makes a configuration",
         .where = fmt::format("none is named {} and needs no arguments", pattern),
         .help = "give the file that has it"});
  }
  const std::string help =
      wanted.empty() ? fmt::format("name one of them: {}{}{}", origin, kFunctionMark, known.front())
                     : estimator::suggestion(wanted, known);
  throw estimator::UserError(
      {.what = wanted.empty() ? origin + " has several configurations"
                              : origin + " has no such function",
       .where = wanted.empty() ? fmt::format("{}", fmt::join(known, ", ")) : wanted,
       .help = help});
}

void refuse_no_object(const PythonValue& value,
                      const std::string& function,
                      const std::string& origin) {
  if (value.is(PythonValue::Kind::kObject)) return;
  throw estimator::UserError({.what = function + " gives no configuration that can be read",
                              .where = fmt::format("{}: {}", origin, value.text),
                              .help = "name a function that returns one"});
}

void note_undecided(const std::vector<std::string>& places, ImportedPlan& plan) {
  for (const std::string& place : places) {
    plan.notes.push_back(
        fmt::format("{}: not followed, since whether it is reached is not known", place));
  }
}

}  // namespace sim
