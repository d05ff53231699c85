#include "sim/cli/import/shell/shell_state.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace sim {
namespace {

/// "1", "@", "#"
bool is_argument(const std::string& name) {
  return name == "@" || name == "*" || name == "#" ||
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::size_t bytes_of(const std::vector<std::string>& items) {
  constexpr std::size_t kEach = 32;  // the strings themselves
  std::size_t bytes = kEach;
  for (const std::string& item : items) bytes += kEach + item.size();
  return bytes;
}

}  // namespace

std::size_t ShellState::bytes(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? 0 : bytes_of(found->second);
}

std::size_t ShellState::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, items] : variables_) bytes += name.size() + bytes_of(items);
  return bytes;
}

int ShellState::line(const std::string& name) const {
  const auto found = lines_.find(name);
  return found == lines_.end() ? 0 : found->second;
}

void ShellState::set(const std::string& name, std::vector<std::string> items, int line) {
  note_assigned(name);
  if (std::any_of(items.begin(), items.end(), has_argument)) with_arguments_.insert(name);
  variables_[name] = std::move(items);
  lines_[name] = line;
}

void ShellState::unset(const std::string& name) {
  note_assigned(name);
  variables_.erase(name);
}

void ShellState::set_undecided(const std::string& name) {
  note_assigned(name);
  const bool holds_arguments = with_arguments_.contains(name);
  variables_[name] = {holds_arguments ? undecided_arguments("$" + name) : undecided("$" + name)};
}

void ShellState::may_set(const std::string& name, std::string_view raw) {
  if (has_argument(raw)) with_arguments_.insert(name);
  note_assigned(name);
}

void ShellState::note_assigned(const std::string& name) {
  const bool is_local = std::any_of(
      calls_.begin(), calls_.end(), [&](const Call& call) { return call.outer.contains(name); });
  if (!is_local) assigned_.insert(name);
}

ShellVariables ShellState::take_arguments() {
  ShellVariables arguments;
  for (auto at = variables_.begin(); at != variables_.end();) {
    const auto next = std::next(at);
    if (is_argument(at->first)) arguments.insert(variables_.extract(at));
    at = next;
  }
  return arguments;
}

void ShellState::set_arguments(const std::vector<std::string>& arguments) {
  take_arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    variables_[std::to_string(i + 1)] = {arguments[i]};
  }
  variables_["@"] = arguments;
  variables_["*"] = arguments;
  variables_["#"] = {std::to_string(arguments.size())};
}

void ShellState::shift(std::size_t count) {
  const auto found = variables_.find("@");
  if (found == variables_.end() || found->second.size() < count) return;
  const auto begin = found->second.begin() + static_cast<std::ptrdiff_t>(count);
  set_arguments(std::vector<std::string>(begin, found->second.end()));
}

void ShellState::begin_call(const std::vector<std::string>& arguments) {
  calls_.push_back({.outer_arguments = take_arguments(), .outer = {}});
  set_arguments(arguments);
}

void ShellState::end_call() {
  Call call = std::move(calls_.back());
  calls_.pop_back();
  take_arguments();
  variables_.merge(call.outer_arguments);
  for (auto& [name, items] : call.outer) {
    variables_.erase(name);
    if (items) variables_.emplace(name, std::move(*items));
  }
}

void ShellState::make_local(const std::string& name) {
  if (calls_.empty()) return;
  const auto found = variables_.find(name);
  calls_.back().outer.try_emplace(
      name, found == variables_.end() ? std::nullopt : std::optional(found->second));
}

std::set<std::string> ShellState::begin_guess() { return std::exchange(assigned_, {}); }

void ShellState::end_guess(std::set<std::string> before, bool is_undecided) {
  const std::set<std::string> names = std::exchange(assigned_, std::move(before));
  for (const std::string& name : names) {
    is_undecided ? set_undecided(name) : note_assigned(name);
  }
}

}  // namespace sim
