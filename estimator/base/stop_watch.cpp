#include "estimator/base/stop_watch.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include "estimator/base/errors.h"

namespace estimator {
namespace {

/// By a signal, and not continued since. The state stays there for the next who asks.
bool stands_still(pid_t child) {
  siginfo_t info{};  // si_pid stays 0 when there is nothing to tell
  return waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

}  // namespace

bool StopWatch::is_stopped(pid_t child, std::string_view name) {
  constexpr std::chrono::seconds kLongest{10};
  if (!stands_still(child)) {
    since_.erase(child);
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  const auto since = since_.emplace(child, now).first->second;
  if (now - since > kLongest) {
    throw UserError(
        {.what = fmt::format("{} was stopped and not continued", name),
         .where = fmt::format("process {} stood still for {} s", child, kLongest.count()),
         .help = "start it again, and let its processes run"},
        ExitCode::kMachineLacks);
  }
  return true;
}

}  // namespace estimator
