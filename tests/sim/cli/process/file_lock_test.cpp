#include "sim/cli/process/file_lock.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <thread>

#include "estimator/base/errors.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::UserError;

class LockOfAFile : public OnerankProgram {
 protected:
  ExitCode exit_code_of_taking(const std::string& file) {
    try {
      const FileLock lock(path(file), "another", interrupts_);
      return ExitCode::kDone;
    } catch (const UserError& error) {
      return error.exit_code();
    }
  }

  const Interrupts interrupts_;
};

TEST_F(LockOfAFile, IsWaitedForWhileAnotherHoldsIt) {
  auto other = std::make_unique<FileLock>(path("lock"), "another", interrupts_);
  std::thread frees([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    other.reset();
  });
  testing::internal::CaptureStderr();
  EXPECT_EQ(exit_code_of_taking("lock"), ExitCode::kDone);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "onerank: waiting for another\n");
  frees.join();
  EXPECT_EQ(other, nullptr);
}

TEST_F(LockOfAFile, IsWaitedForNoLongerAfterASignal) {
  const FileLock other(path("lock"), "another", interrupts_);
  raise(SIGTERM);
  testing::internal::CaptureStderr();
  EXPECT_EQ(exit_code_of_taking("lock"), ExitCode::kInterrupted);
  testing::internal::GetCapturedStderr();
}

TEST_F(LockOfAFile, NeedsAFileThatCanBeOpened) {
  EXPECT_EQ(exit_code_of_taking("none/lock"), ExitCode::kMachineLacks);
}

}  // namespace
}  // namespace sim
