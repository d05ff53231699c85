// What becomes of children that a signal stops.
#include "sim/rank/child_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "estimator/base/errors.h"

namespace sim {
namespace {

int stop_this() {
  std::raise(SIGSTOP);
  return 0;
}

TEST(ChildProcesses, ThatAreStoppedAreNotWaitedForWithoutEnd) {
  pid_t stopped = 0;
  {
    ChildProcesses children;
    stopped = children.start("rank 1", stop_this);
    children.start("rank 2", [] { return 4; });
    EXPECT_EQ(children.wait_for_one().name, "rank 2");
    try {
      children.wait_for_one();
      FAIL() << "a stopped child ended";
    } catch (const estimator::UserError& error) {
      EXPECT_EQ(error.exit_code(), estimator::ExitCode::kMachineLacks);
      EXPECT_EQ(error.problems().at(0).what, "rank 1 was stopped and not continued");
    }
  }
  EXPECT_EQ(kill(stopped, 0), -1) << "it was left behind";
}

TEST(ChildProcesses, ThatAreContinuedGoOn) {
  ChildProcesses children;
  const pid_t stopped = children.start("rank 1", stop_this);
  children.start("continues it", [stopped] {
    usleep(500'000);  // it stands still meanwhile
    return kill(stopped, SIGCONT);
  });
  while (children.running() > 0) {
    const ChildProcesses::Ended ended = children.wait_for_one();
    EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0) << ended.name;
  }
}

}  // namespace
}  // namespace sim
