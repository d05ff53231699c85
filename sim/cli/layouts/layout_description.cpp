#include "sim/cli/layouts/layout_description.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/text.h"
#include "estimator/what_if/typed_flags.h"
#include "sim/cli/jobs/typed_arguments.h"

namespace sim {
namespace {

using estimator::contains;
using estimator::FoundLayout;
using estimator::Layout;

constexpr std::string_view kGroupsOfSearch[] = {"Search", "Several machines", "Output"};
/// Options that say how many GPUs there are, and what an estimate has not.
constexpr std::string_view kLeftOut[] = {"--gpus", "--nodes", "--store"};

bool edits_key(const Layout& layout, const std::string& key) {
  return std::any_of(
      layout.edits.begin(), layout.edits.end(), [&](const auto& edit) { return edit.path == key; });
}

}  // namespace

FoundLayout LayoutDescription::found(const Layout& layout) const {
  FoundLayout found = found_layout(layout, layout.plan.cluster.usd_per_gpu_hour);
  // A file may say something else than the defaults, which `flags` leaves out.
  found.command =
      command_of(layout, said_.has_file() ? estimator::flags_to_type(layout.edits) : found.flags);
  return found;
}

FoundLayout LayoutDescription::executed(const Layout& layout) const {
  FoundLayout with_executed = found(layout);
  add_executed(layout, with_executed);
  return with_executed;
}

std::string LayoutDescription::command_of(const Layout& layout, const std::string& flags) const {
  const auto is_left_out = [&](const CLI::Option& option, const std::string& value) {
    return contains(kGroupsOfSearch, option.get_group()) || contains(kLeftOut, long_name(option)) ||
           edits_key(layout, said_.flags().key_of(option, value));
  };
  std::string command = "onerank estimate";
  for (const std::string& argument : typed_arguments(app_, is_left_out)) {
    command += " " + estimator::shell_word(argument);
  }
  command += fmt::format(" --gpus {}", layout.plan.world_size());
  return flags.empty() ? command : command + " " + flags;
}

}  // namespace sim
