#include "sim/cli/input/offered_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/base/text.h"

namespace sim {

CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& words) {
  return option->option_text(fmt::format("{}", fmt::join(words, "|")));
}

std::vector<std::string> offered_words(const CLI::Option& option) {
  const std::string& text = option.get_option_text();
  return text.empty() ? std::vector<std::string>{} : estimator::split(text, '|');
}

}  // namespace sim
