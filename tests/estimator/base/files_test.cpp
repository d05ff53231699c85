#include "estimator/base/files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

namespace fs = std::filesystem;

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
  EXPECT_NE(complaint_of([&] { write_file_whole(folder_.string(), "{}"); }).find("it is a folder"),
            std::string::npos);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Files, FollowSymbolicLinksAndKeepThem) {
  write_file_whole(path("target"), "old");
  fs::create_symlink(path("target"), path("link"));
  write_file_whole(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")), "new");
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
