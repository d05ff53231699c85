#include "sim/verify/ranks/deadline.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace sim {

void end_process(const estimator::Problem& problem) {
  std::fputs(estimator::to_text({problem}).c_str(), stderr);
  std::fflush(stderr);
  _exit(static_cast<int>(estimator::ExitCode::kMachineLacks));
}

Deadline::Deadline(std::chrono::milliseconds time, estimator::Problem problem)
    : thread_([this, time, problem = std::move(problem)] {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, time, [this] { return met_; })) end_process(problem);
      }) {}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    met_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace sim
