#include "sim/cli/process/private_folder.h"

#include <gmock/gmock.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "estimator/base/errors.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::HasSubstr;

class PrivateFolder : public OnerankProgram {
 protected:
  std::string complaint() {
    try {
      make_private_folder(path("caches/onerank/torch"), path("caches/onerank"));
    } catch (const estimator::UserError& error) {
      EXPECT_EQ(error.exit_code(), estimator::ExitCode::kMachineLacks);
      return error.what();
    }
    return "";
  }
};

TEST_F(PrivateFolder, IsForThisUserAlone) {
  EXPECT_EQ(complaint(), "");
  EXPECT_EQ(complaint(), "") << "also when it is there";
  for (const char* name : {"caches/onerank", "caches/onerank/torch"}) {
    struct stat status {};
    ASSERT_EQ(stat(path(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u);
  }
}

TEST_F(PrivateFolder, IsNotTakenWhereOthersMayWrite) {
  ASSERT_EQ(complaint(), "");
  ASSERT_EQ(chmod(path("caches/onerank").c_str(), 0777), 0);
  EXPECT_THAT(complaint(), HasSubstr("others may write to it"));
}

TEST_F(PrivateFolder, IsNotTakenFromBehindALink) {
  std::filesystem::create_directories(path("caches"));
  std::filesystem::create_directories(path("elsewhere"));
  std::filesystem::create_directory_symlink(path("elsewhere"), path("caches/onerank"));
  EXPECT_THAT(complaint(), HasSubstr("it is no folder"));
}

TEST_F(PrivateFolder, IsNotTakenFromAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(complaint(), "");
  ASSERT_EQ(chown(path("caches/onerank/torch").c_str(), 65534, 65534), 0);
  EXPECT_THAT(complaint(), HasSubstr("it belongs to another user"));
}

TEST(UserCacheFolder, IsOfTheVariablesOrOfTheUsersHome) {
  EXPECT_EQ(user_cache_folder({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/h"}}), "/c");
  EXPECT_EQ(user_cache_folder({{"HOME", "/h"}}), "/h/.cache");
  const passwd* user = getpwuid(geteuid());
  if (user == nullptr) GTEST_SKIP() << "the system does not know this user";
  EXPECT_EQ(user_cache_folder({}), std::filesystem::path(user->pw_dir) / ".cache");
}

}  // namespace
}  // namespace sim
