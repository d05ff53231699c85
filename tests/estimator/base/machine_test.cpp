#include "estimator/base/machine.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace estimator {
namespace {

/// What is told of a thrown `error`, and the exit code.
template <class Error>
std::pair<std::string, ExitCode> told(const Error& error) {
  testing::internal::CaptureStderr();
  const ExitCode exit_code = tell_failure(std::make_exception_ptr(error));
  return {testing::internal::GetCapturedStderr(), exit_code};
}

TEST(MachineError, IsOfTheMachineAndHasTheWayOut) {
  const UserError error = machine_error("cannot start a program", EAGAIN);
  EXPECT_EQ(error.exit_code(), ExitCode::kMachineLacks);
  EXPECT_THAT(error.what(),
              testing::AllOf(testing::HasSubstr("Resource temporarily unavailable"),
                             testing::HasSubstr("ulimit -u")));
  EXPECT_FALSE(machine_way_out(EACCES));  // a path that the user gave
}

TEST(TellFailure, IsABugOnlyWhereNeitherTheUserNorTheMachineIsToBlame) {
  EXPECT_EQ(told(UserError({"w", "", ""})).second, ExitCode::kBadInput);
  EXPECT_EQ(told(std::bad_alloc()).second, ExitCode::kMachineLacks);
  EXPECT_THAT(told(std::bad_alloc()).first, testing::HasSubstr("no memory left"));
  const std::system_error no_threads(
      std::make_error_code(std::errc::resource_unavailable_try_again));
  EXPECT_EQ(told(no_threads).second, ExitCode::kMachineLacks);
  EXPECT_EQ(told(std::logic_error("oops")).second, ExitCode::kInternal);
  EXPECT_THAT(told(std::logic_error("oops")).first, testing::HasSubstr("a bug in Onerank"));
}

}  // namespace
}  // namespace estimator
