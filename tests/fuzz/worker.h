// Inputs run in a process of their own, so that a crash, a hang or a hunger for memory ends that
// process alone, and the input that made it is known.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fuzz {

struct Limits {
  double seconds = 10;               ///< of processor time, for one input
  int64_t bytes = int64_t{1} << 30;  ///< resident, of the whole process
};

/// What the worker tells while it runs.
struct Progress {
  int64_t next = 0;      ///< the first input that has not ended
  int64_t accepted = 0;  ///< inputs that were not refused
};

/// One input that did not end as it must.
struct Finding {
  int64_t index = 0;
  std::string what;  ///< "killed by signal 11 (Segmentation fault)"
  std::string input;
};

class Worker {
 public:
  static constexpr size_t kMostInputBytes = size_t{1} << 20;

  /// Gives the input with a number.
  using Source = std::function<std::string(int64_t index)>;
  using Target = std::function<void(int64_t index, const std::string& input)>;

  Worker(Source source, Target target, Limits limits);

  /// Runs the inputs from `first` to before `end`, or until now() is `deadline` if that is earlier.
  /// Returns at the first finding, with `progress` after it, or with none.
  std::unique_ptr<Finding> run(int64_t first, int64_t end, double deadline, Progress& progress);

 private:
  struct Shared;

  [[noreturn]] void work(int64_t first, int64_t end, double deadline);
  /// How the process ended, or for what it was ended; "" if it ended well.
  std::string wait_for(int process) const;
  /// Which limit it is over; "" for none.
  std::string excess_of(int process) const;
  void fail_over_memory() const;

  Source source_;
  Target target_;
  Limits limits_;
  std::shared_ptr<Shared> shared_;
};

/// Seconds of the steady clock.
double now();

}  // namespace fuzz
