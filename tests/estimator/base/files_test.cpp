#include "estimator/base/files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "estimator/base/machine.h"

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr ReadLimits kShort{.bytes = 1 << 20, .silence = std::chrono::milliseconds(50)};

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "onerank-files-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Files() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(Files, AreReadAsTheyWereWritten) {
  const std::string content("a\0b\nc\xff", 6);
  write_file_whole(path("file"), content);
  EXPECT_EQ(read_file(path("file")), content);
}

TEST_F(Files, ReplaceAnOlderOneAndLeaveNothingBeside) {
  write_file_whole(path("file"), "old and longer");
  write_file_whole(path("file"), "new");
  EXPECT_EQ(read_file(path("file")), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, ThatCannotBeReadAreNamedWithTheReason) {
  EXPECT_NE(complaint_of([&] { read_file(path("missing")); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(complaint_of([&] { read_file(folder_.string()); }).find("it is a folder"),
            std::string::npos);
}

TEST_F(Files, ThatCannotBeWrittenAreNamedAndNothingIsLeft) {
  const std::string text =
      complaint_of([&] { write_file_whole(path("no/such/folder/x.json"), "{}"); });
  EXPECT_NE(text.find("cannot write " + path("no/such/folder/x.json")), std::string::npos) << text;
  EXPECT_THAT(complaint_of([&] { write_file_whole(folder_.string(), "{}"); }),
              HasSubstr("Is a directory"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Files, FollowSymbolicLinksAndKeepThem) {
  write_file_whole(path("target"), "old");
  fs::create_symlink(path("target"), path("link"));
  write_file_whole(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")), "new");
}

TEST_F(Files, KeepTheirModeWhenTheyAreReplaced) {
  for (const mode_t mode : {0600, 0666, 0640}) {
    write_file_whole(path("file"), "old");
    ASSERT_EQ(chmod(path("file").c_str(), mode), 0);
    write_file_whole(path("file"), "new");
    struct stat status {};
    ASSERT_EQ(stat(path("file").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
  }
}

TEST_F(Files, AreMadeWithTheModeThatTheUmaskLeaves) {
  const mode_t before = umask(027);
  write_file_whole(path("file"), "new");
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path("file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_F(Files, MayHaveTheLongestNameThatAFolderTakes) {
  const std::string longest(255, 'x');
  write_file_whole(path(longest), "content");
  EXPECT_EQ(read_file(path(longest)), "content");
  EXPECT_THAT(complaint_of([&] { write_file_whole(path(longest + "x"), ""); }),
              HasSubstr("too long"));
  EXPECT_EQ(entries(), 1u);
}

// Whoever could guess the name of the file beside could lay a link there that is written through.
TEST_F(Files, AreWrittenUnderAnotherNameEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(mkfifo(path("source").c_str(), 0600), 0);
    std::thread copier([&] { copy_file_whole(path("source"), path("copy")); });
    std::ofstream source(path("source"));
    source << "begun" << std::flush;
    while (entries() < 2 + (i > 0 ? 1 : 0)) std::this_thread::yield();
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".onerank-")) seen.insert(name);
    }
    source.close();
    copier.join();
    fs::remove(path("source"));
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(read_file(path("copy")), "begun");
}

TEST_F(Files, AreWholeBeforeASignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        ASSERT_EQ(mkfifo(path("source").c_str(), 0600), 0);
        std::thread writer([&] {
          sigset_t all;
          sigfillset(&all);
          pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the main thread is to take it
          std::ofstream source(path("source"));
          while (entries() < 2) std::this_thread::yield();
          kill(getpid(), SIGTERM);
          source << "whole";
        });
        copy_file_whole(path("source"), path("copy"));
      },
      testing::KilledBySignal(SIGTERM),
      "");
  EXPECT_EQ(read_file(path("copy")), "whole");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(Files, LargerThanTheLimitAreRefused) {
  write_file_whole(path("large"), std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(complaint_of([&] { read_file(path("large"), kShort); }),
              HasSubstr("it is too large, more than 1 MiB"));
  write_file_whole(path("large"), std::string(1 << 20, 'x'));
  EXPECT_EQ(read_file(path("large"), kShort).size(), 1u << 20);
}

TEST_F(Files, OfMoreThanTheLimitAreCopied) {
  const std::string content(ReadLimits{}.bytes / 64 + 7, 'x');
  write_file_whole(path("large"), content);
  copy_file_whole(path("large"), path("copy"));
  EXPECT_EQ(fs::file_size(path("copy")), content.size());
}

TEST_F(Files, ThatArePipesAreReadToTheirEndAndNotWaitedForWithoutOne) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(complaint_of([&] { read_file(path("pipe"), kShort); }),
              HasSubstr("nothing has come through it for 0.05 s"));
  std::thread writer([&] { std::ofstream(path("pipe")) << "content"; });
  EXPECT_EQ(read_file(path("pipe")), "content");
  writer.join();
}

TEST(SpecialFiles, ThatAreDevicesAreNotRead) {
  for (const char* device : {"/dev/zero", "/dev/null"}) {
    EXPECT_THAT(complaint_of([&] { read_file(device); }), HasSubstr("it is a device")) << device;
  }
}

TEST(SpecialFiles, WhoseReadingFailsAreNotTakenForShortOnes) {
  if (!fs::exists("/proc/self/mem")) GTEST_SKIP() << "this machine has no /proc";
  EXPECT_THAT(complaint_of([] { read_file("/proc/self/mem"); }),
              HasSubstr("cannot read /proc/self/mem"));
}

/// Ends this process as Onerank would.
[[noreturn]] void write_beyond_limit(const std::string& path) {
  take_usual_signals();
  const rlimit limit{4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  try {
    write_file_whole(path, std::string(8192, 'x'));
  } catch (...) {
    _exit(static_cast<int>(tell_failure(std::current_exception())));
  }
  _exit(0);
}

TEST_F(Files, BeyondALimitOnTheirSizeAreAnErrorOfTheMachine) {
  EXPECT_EXIT(write_beyond_limit(path("file")),
              testing::ExitedWithCode(3),
              "File too large\n  help: raise the limit on the size of files");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Files, FoldersThatCannotBeMadeAreNamed) {
  make_folder(path("a/b"));
  EXPECT_TRUE(fs::is_directory(path("a/b")));
  make_folder(path("a/b"));
  write_file_whole(path("file"), "");
  for (const std::string& name : {path("file"), path("file/below"), path(std::string(300, 'x'))}) {
    EXPECT_THAT(complaint_of([&] { make_folder(name); }), HasSubstr("cannot write " + name));
  }
}

TEST(SpecialFiles, AreWrittenToAndNotReplaced) {
  write_file_whole("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(SpecialFiles, ThatAreFullAreAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  EXPECT_NE(complaint_of([] { write_file_whole("/dev/full", "x"); }).find("No space left"),
            std::string::npos);
}

TEST(ParseJson, TakesCommentsAndCommasBeforeAClosingBracket) {
  const Json json = parse_json(R"({
  // "b": 2,
  "a": [1, 2, /* , ] */ ], "text": "// no, } comment\\", "c": {"d": 1,},
})",
                               "plan.json");
  EXPECT_EQ(json, Json::parse(R"({"a": [1, 2], "text": "// no, } comment\\", "c": {"d": 1}})"));
  EXPECT_NE(complaint_of([] { parse_json("[1,, ]", "plan.json"); }), "");
  EXPECT_NE(complaint_of([] { parse_json("[,]", "plan.json"); }), "");
}

TEST(ParseJson, NamesTheLineAndColumn) {
  const std::string text = complaint_of([] { parse_json("{\n  \"a\": ,\n}", "plan.json"); });
  EXPECT_NE(text.find("plan.json is not valid JSON"), std::string::npos) << text;
  EXPECT_NE(text.find("line 2, column 8"), std::string::npos) << text;
}

TEST(ParseJson, NamesTheLineOfANumberThatNoDoubleHolds) {
  const std::string text =
      complaint_of([] { parse_json("{\n  \"a\": 1,\n  \"b\": 1e999}", "plan.json"); });
  EXPECT_EQ(text.find("json.exception"), std::string::npos) << text;
  EXPECT_NE(text.find("line 3, column "), std::string::npos) << text;
  EXPECT_NE(text.find("1e999"), std::string::npos) << text;
}

TEST(ParseJson, RefusesObjectsOfTooManyKeys) {
  std::string text = "{";
  for (std::size_t i = 0; i <= kMostKeys; ++i) text += fmt::format("{}\"k{}\": 1", i ? "," : "", i);
  EXPECT_NE(complaint_of([&] { parse_json(text + "}", "plan.json"); }).find("has too many keys"),
            std::string::npos);
  EXPECT_NO_THROW(parse_json(text.substr(0, text.rfind(',')) + "}", "plan.json"));
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const std::string text :
       {"", "{", "{\"a\": NaN}", "{\"a\": 1e999}", "\x7f\x45\x4c\x46", "{} {}"}) {
    EXPECT_THROW(parse_json(text, "plan.json"), UserError) << text;
  }
}

TEST(ParseJson, RefusesAKeyThatStandsTwice) {
  const std::string text =
      complaint_of([] { parse_json(R"({"a": {"b": 1, "b": 2}})", "plan.json"); });
  EXPECT_NE(text.find("plan.json: b"), std::string::npos) << text;
}

TEST(ParseJson, TakesEqualKeysOfDifferentObjects) {
  EXPECT_EQ(parse_json(R"({"a": {"b": 1}, "c": {"b": 2}})", "plan.json")["c"]["b"], 2);
}

TEST(ParseJson, RefusesNestingThatWouldOverflowTheStack) {
  const std::string deep(200'000, '[');
  EXPECT_NE(complaint_of([&] { parse_json(deep, "plan.json"); }).find("nested too deeply"),
            std::string::npos);
}

TEST(Shown, IsShort) {
  EXPECT_EQ(shown(Json(7)), "7");
  EXPECT_LT(shown(Json(std::string(1000, 'x'))).size(), 80u);
}

}  // namespace
}  // namespace estimator
