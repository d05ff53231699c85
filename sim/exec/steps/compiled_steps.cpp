#include "sim/exec/steps/compiled_steps.h"

#include "sim/exec/program/python.h"

namespace sim {

void CompiledSteps::made(const std::string& region, bool steps, const Observer& observer) {
  const std::lock_guard lock(mutex_);
  observer_ = observer;
  if (steps) {
    regions_.insert(region);
  } else {
    regions_.erase(region);
  }
}

bool CompiledSteps::holds(std::string_view range) {
  constexpr std::string_view kRegion = "Torch-Compiled Region: ";
  if (!range.starts_with(kRegion)) return false;
  const std::lock_guard lock(mutex_);
  return regions_.find(range.substr(kRegion.size())) != regions_.end();
}

/// Python calls nothing while it raises; such a step has not ended.
void CompiledSteps::finished() {
  if (!python_raises()) observer_.after();
}

}  // namespace sim
