#include "estimator/replay/module_slices.h"

#include <utility>

#include "estimator/base/text.h"

namespace estimator {
namespace {

/// "backward", "layers.3", "layers.3.mlp", ... A number belongs to the name before it.
std::vector<std::string> path_of(Direction direction, const std::string& module) {
  std::vector<std::string> path = {to_string(direction)};
  std::string whole;
  for (const std::string& part : split(module, '.')) {
    if (part.empty()) continue;
    whole += whole.empty() ? part : "." + part;
    if (is_digits(part) && path.size() > 1) path.pop_back();
    path.push_back(whole);
  }
  return path;
}

}  // namespace

void ModuleSlices::close_down_to(std::size_t depth) {
  while (open_.size() > depth) {
    file_.add({.process = process_, .thread = thread_, .begin = open_.back().begin, .end = end_},
              open_.back().name,
              "module",
              "");
    open_.pop_back();
  }
}

bool ModuleSlices::add(Direction direction, const std::string& module, int64_t begin, int64_t end) {
  const std::vector<std::string> path = path_of(direction, module);
  std::size_t same = 0;
  while (same < open_.size() && same < path.size() && open_[same].name == path[same]) ++same;
  close_down_to(same);
  for (std::size_t i = same; i < path.size(); ++i) open_.push_back({path[i], begin});
  end_ = end;
  return std::exchange(last_, path.back()) != path.back();
}

}  // namespace estimator
