// Ends the process when something takes too long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "estimator/base/errors.h"

namespace sim {

/// Where end_process() writes its problem, too; see tell_failure(). Called before there are
/// threads.
void write_end_to(std::string errors_file);

/// Prints the problem and ends the process at once with exit code 3 (this machine lacks something).
[[noreturn]] void end_process(const estimator::Problem& problem);

/// Ends the process with `problem` unless it is destroyed in time.
class Deadline {
 public:
  Deadline(std::chrono::milliseconds time, estimator::Problem problem);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool met_ = false;
  std::thread thread_;
};

}  // namespace sim
