#include "sim/cli/torch/preload.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace sim {
namespace {

namespace fs = std::filesystem;

/// A folder like <build>/virtual_gpu with two libraries, under a name of the test's choice.
class BuildFolder {
 public:
  explicit BuildFolder(const std::string& name) {
    std::string root = (fs::temp_directory_path() / "preload-test-XXXXXX").string();
    root_ = mkdtemp(root.data());
    path_ = root_ / name;
    fs::create_directories(path_ / "lib");
    std::ofstream(path_ / "lib" / "liba.so.1") << "a";
    std::ofstream(path_ / "preload") << "liba.so.1\nlibb.so.2\n";
  }
  ~BuildFolder() { fs::remove_all(root_); }

  const fs::path& path() const { return path_; }

 private:
  fs::path root_;
  fs::path path_;
};

TEST(Preload, ListsOnlyWhatBeginsAsWasAsked) {
  const BuildFolder folder("plain");
  EXPECT_EQ(Preload(folder.path(), "libb.so").value(),
            (folder.path() / "lib" / "libb.so.2").string());
}

TEST(Preload, ListsTheLibrariesInOrder) {
  const BuildFolder folder("plain");
  const std::string lib = (folder.path() / "lib").string();
  EXPECT_EQ(Preload(folder.path()).value(), lib + "/liba.so.1:" + lib + "/libb.so.2");
}

TEST(Preload, GoesThroughALinkWhereLdPreloadWouldSplitThePath) {
  for (const char* name : {"with space", "with:colon", "with$dollar"}) {
    const BuildFolder folder(name);
    fs::path link;
    {
      const Preload preload(folder.path());
      const std::string first = preload.value().substr(0, preload.value().find(':'));
      EXPECT_EQ(first.find_first_of(" $"), std::string::npos) << first;
      EXPECT_TRUE(fs::equivalent(first, folder.path() / "lib" / "liba.so.1")) << first;
      link = fs::path(first).parent_path();
      const std::string temporary = link.parent_path().filename();
      EXPECT_TRUE(temporary.starts_with("onerank-run-"))
          << temporary << " is not removed when its owner was killed";
    }
    EXPECT_FALSE(fs::exists(fs::symlink_status(link))) << "the link outlived the object";
    EXPECT_TRUE(fs::exists(folder.path() / "lib" / "liba.so.1")) << "the library was removed";
  }
}

TEST(Preload, SaysThatThereIsNoVirtualGpu) {
  EXPECT_THROW(Preload("/no/such/folder"), std::runtime_error);
}

}  // namespace
}  // namespace sim
