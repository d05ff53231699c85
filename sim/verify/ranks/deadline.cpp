#include "sim/verify/ranks/deadline.h"

#include <unistd.h>

#include <exception>
#include <string>
#include <utility>

#include "estimator/base/machine.h"

namespace sim {

namespace {

std::string errors_of_process;

}  // namespace

void write_end_to(std::string errors_file) { errors_of_process = std::move(errors_file); }

void end_process(const estimator::Problem& problem) {
  const estimator::UserError error(problem, estimator::ExitCode::kMachineLacks);
  _exit(
      static_cast<int>(estimator::tell_failure(std::make_exception_ptr(error), errors_of_process)));
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
