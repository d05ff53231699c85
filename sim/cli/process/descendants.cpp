#include "sim/cli/process/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace sim {
namespace {

/// Of the main thread, which starts all programs and adopts all orphans.
std::vector<pid_t> children() {
  const std::string id = std::to_string(getpid());
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> pids;
  for (pid_t pid; list >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace

Descendants::Descendants() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

// A child's own children come to light when it has ended.
Descendants::~Descendants() {
  for (auto pids = children(); !pids.empty(); pids = children()) {
    for (const pid_t pid : pids) kill(pid, SIGKILL);
    for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace sim
