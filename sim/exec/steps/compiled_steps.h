// Optimizer steps that torch.compile has compiled. Their code opens no profiler range for a step.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace sim {

/// Knows which regions compiled by torch.compile contain an optimizer's step, and what the observer
/// in Python wants to do before and after them. The observer reports each region when it is
/// compiled. Functions may be called from any thread.
class CompiledSteps {
 public:
  /// Functions of the observer. Both take the lock of Python's interpreter, and throw nothing.
  struct Observer {
    void (*before)();
    void (*after)();
  };

  /// Reports a compiled region. `region` is torch's number for it, "3/0"; after a reset of torch's
  /// compiler the same number may mean another region.
  void made(const std::string& region, bool steps, const Observer& observer);

  /// Whether a profiler range is a compiled region that steps an optimizer.
  bool holds(std::string_view range);
  // Called when such a region starts and ends, by a thread that holds Python's interpreter lock.
  void started() { observer_.before(); }
  void finished();

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> regions_;
  Observer observer_{};
};

}  // namespace sim
