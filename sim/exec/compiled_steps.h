// Optimizer steps that run as code of torch.compile, which opens no range around them.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace sim {

/// Which of the regions that torch.compile made hold an optimizer's step, as the observer in Python
/// tells when one is made, and what the observer wants to do around those. Of any thread.
class CompiledSteps {
 public:
  /// The observer's; both take Python's interpreter, and throw nothing.
  struct Observer {
    void (*before)();
    void (*after)();
  };

  /// `region`: as torch numbers it, "3/0". After a reset of torch's compiler it may be another one.
  void made(const std::string& region, bool steps, const Observer& observer);

  /// Whether a range of a profiler's is a compiled region that steps.
  bool holds(std::string_view range);
  // When such a region starts and ends, with Python's interpreter.
  void started() { observer_.before(); }
  void finished();

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> regions_;
  Observer observer_{};
};

}  // namespace sim
