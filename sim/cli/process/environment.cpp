#include "sim/cli/process/environment.h"

#include <unistd.h>

#include <string_view>

#include "estimator/base/errors.h"
#include "estimator/base/text.h"

namespace sim {

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

void require_utf8(std::string_view text, const std::string& source) {
  const std::size_t at = estimator::find_non_utf8(text);
  if (at == std::string_view::npos) return;
  throw estimator::UserError({.what = source + " is not UTF-8 text",
                              .where = std::string(text),
                              .help = "write it in UTF-8, or rename the file that it names"});
}

std::optional<std::string> find_variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  require_utf8(found->second, "the variable " + name);
  return found->second;
}

void put_first(const std::string& paths, const std::string& name, Environment& environment) {
  const auto others = find_variable(environment, name);
  environment[name] = paths + (others ? ":" + *others : "");
}

}  // namespace sim
