#include "estimator/base/error_document.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

TEST(ErrorDocument, HandsAnErrorToAnotherProcess) {
  const UserError error(
      {{"error: in the text", "line 1\n  line 2", "help: no"}, {"second", "", ""}},
      ExitCode::kMachineLacks);
  const auto read = error_in(error_message(error));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->exit_code(), ExitCode::kMachineLacks);
  EXPECT_STREQ(read->what(), error.what());
}

TEST(ErrorDocument, ReplacesWhatIsNotUtf8) {
  const auto read = error_in(error_message(UserError({"\xff", "", ""})));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->problems().front().what, "\xef\xbf\xbd");
}

TEST(ErrorDocument, IsNotInAMessageThatWasNotEnded) {
  EXPECT_FALSE(error_in(""));
  const std::string message = error_message(UserError({"what", "", ""}));
  EXPECT_FALSE(error_in(message.substr(0, message.size() / 2)));
}

}  // namespace
}  // namespace estimator
