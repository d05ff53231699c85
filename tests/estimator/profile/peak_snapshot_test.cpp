#include "estimator/profile/peak_snapshot.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// A weight of 1,000 floats and a workspace of 2 MiB: 4,096 + 2,097,152 bytes.
PeakSnapshot small_snapshot() {
  PeakSnapshot snapshot;
  snapshot.header.peak = {.allocated_bytes = 2'101'248,
                          .reserved_bytes = 4'194'304,
                          .phase = "iteration_1.forward_backward"};
  snapshot.header.peak.categories.emplace();
  (*snapshot.header.peak.categories)[MemoryCategory::kParameter] = 4096;
  (*snapshot.header.peak.categories)[MemoryCategory::kWorkspace] = 2'097'152;
  snapshot.header.allocations = 2;
  snapshot.allocations = {{.category = MemoryCategory::kParameter,
                           .bytes = 4096,
                           .requested_bytes = 4000,
                           .shape = std::vector<int64_t>{10, 100},
                           .dtype = "Float",
                           .module = "layers.0.mlp"},
                          {.category = MemoryCategory::kWorkspace,
                           .bytes = 2'097'152,
                           .requested_bytes = 2'097'152,
                           .module = "cublas",
                           .operator_name = "aten::mm",
                           .direction = Direction::kBackward,
                           .micro_batch = 3,
                           .made_the_peak = true}};
  return snapshot;
}

std::string complaint_about_text(const std::string& text) {
  return complaint_of([&] { read_peak_snapshot(text, "peak.jsonl"); });
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

TEST(PeakSnapshot, IsReadAsItWasWritten) {
  const PeakSnapshot snapshot = read_peak_snapshot(to_json_lines(small_snapshot()), "peak.jsonl");
  EXPECT_EQ(to_json_lines(snapshot), to_json_lines(small_snapshot()));
  EXPECT_EQ(snapshot.allocations[0].shape, (std::vector<int64_t>{10, 100}));
  EXPECT_EQ(snapshot.allocations[1].shape, std::nullopt);
  EXPECT_EQ(snapshot.allocations[1].micro_batch, 3);
}

TEST(PeakSnapshot, ThatDoesNotAddUpIsNotWritten) {
  PeakSnapshot snapshot = small_snapshot();
  snapshot.allocations[0].bytes += 512;
  EXPECT_THROW(to_json_lines(snapshot), std::logic_error);
}

TEST(PeakSnapshot, CutBetweenTwoLinesIsRefused) {
  const std::string text = to_json_lines(small_snapshot());
  const std::string cut = text.substr(0, text.rfind('\n', text.size() - 2) + 1);
  EXPECT_NE(complaint_about_text(cut).find("the header tells of 2 allocations, 1 follow"),
            std::string::npos);
}

TEST(PeakSnapshot, CutInsideALineIsRefusedWithTheLine) {
  const std::string text = to_json_lines(small_snapshot());
  EXPECT_NE(complaint_about_text(text.substr(0, text.size() - 20)).find("peak.jsonl, line 3"),
            std::string::npos);
}

TEST(PeakSnapshot, WithoutItsLastNewlineIsRefused) {
  std::string text = to_json_lines(small_snapshot());
  text.pop_back();
  EXPECT_NE(complaint_about_text(text).find("its last line has no end"), std::string::npos);
}

TEST(PeakSnapshot, WithAnotherNumberIsRefused) {
  const std::string text =
      replaced(to_json_lines(small_snapshot()), "\"bytes\":4096", "\"bytes\":4608");
  EXPECT_NE(
      complaint_about_text(text).find("add up to 2101760 bytes, the header's peak is 2101248"),
      std::string::npos);
}

TEST(PeakSnapshot, WithAnotherCategoryIsRefused) {
  const std::string text = replaced(
      to_json_lines(small_snapshot()), "\"category\":\"parameter\"", "\"category\":\"gradient\"");
  EXPECT_NE(complaint_about_text(text).find("the categories do not add up"), std::string::npos);
}

TEST(PeakSnapshot, WithAnUnknownKeyIsRefusedWithTheLineAndTheNearestKey) {
  const std::string text =
      replaced(to_json_lines(small_snapshot()), "\"requested_bytes\"", "\"requested_byte\"");
  const std::string complaint = complaint_about_text(text);
  EXPECT_NE(complaint.find("peak.jsonl, line 2: requested_byte"), std::string::npos);
  EXPECT_NE(complaint.find("did you mean requested_bytes?"), std::string::npos);
}

TEST(PeakSnapshot, ThatHoldsWhatNoRunLeavesIsRefused) {
  const std::string good = to_json_lines(small_snapshot());
  struct Damage {
    const char *what, *with, *complaint;
  };
  for (const Damage& damage :
       {Damage{"\"bytes\":4096", "\"bytes\":0", "line 2: bytes = 0"},
        Damage{"\"bytes\":4096", "\"bytes\":-4096", "line 2: bytes = -4096"},
        Damage{"\"requested_bytes\":4000,", "", "a key is missing"},
        Damage{"[10,100]", "[10,-100]", "line 2: shape[1] = -100"},
        Damage{"\"rank\":0", "\"rank\":1", "the rank is not in its world"},
        Damage{"\"world_size\":1", "\"world_size\":0", "line 1: world_size = 0"},
        Damage{"\"data\":1", "\"data\":9000000000000000", "line 1: layout.data"},
        Damage{"\"reserved_bytes\":4194304", "\"reserved_bytes\":0", "more is allocated"},
        Damage{"\"parameter\":4096", "\"parameter\":4097", "do not add up"}}) {
    const std::string complaint = complaint_about_text(replaced(good, damage.what, damage.with));
    EXPECT_NE(complaint.find(damage.complaint), std::string::npos) << damage.with << ":\n"
                                                                   << complaint;
  }
}

TEST(PeakSnapshot, OfLinesThatWouldOverflowTheirSumIsRefused) {
  const std::string text = to_json_lines(small_snapshot());
  std::string line = text.substr(text.find('\n') + 1);
  line.erase(line.find('\n') + 1);
  line = replaced(line, "\"bytes\":4096", "\"bytes\":1125899906842624");
  std::string all =
      replaced(text.substr(0, text.find('\n') + 1), "\"allocations\":2", "\"allocations\":9000");
  for (int i = 0; i < 9000; ++i) all += line;
  EXPECT_NE(complaint_about_text(all).find("add up to"), std::string::npos);
}

TEST(PeakSnapshot, ForeignFilesAreRefused) {
  EXPECT_NE(complaint_about_text("").find("not a peak snapshot"), std::string::npos);
  EXPECT_NE(complaint_about_text("\x80\x02}q").find("line 1 is not a header"), std::string::npos);
  EXPECT_NE(complaint_about_text("{\"kind\": \"rank_profile\"}\n").find("this is a rank_profile"),
            std::string::npos);
  EXPECT_NE(complaint_about_text("[1, 2]\n").find("kind is not"), std::string::npos);
}

TEST(PeakSnapshot, OfANewerVersionIsRefused) {
  const std::string text =
      replaced(to_json_lines(small_snapshot()), "\"schema_version\":1", "\"schema_version\":2");
  EXPECT_NE(complaint_about_text(text).find("schema_version = 2, this tool reads 1"),
            std::string::npos);
}

}  // namespace
}  // namespace estimator
