#include "sim/cli/report/table.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sim {
namespace {

TEST(Table, AlignsColumnsByTheirWidestCell) {
  Table table({{"phase", Align::kLeft}, {"MiB"}, {"where", Align::kLeft}});
  table.add_row({"build_model", "1.00", "here"});
  table.add_row({"x", "1234.50", ""});
  EXPECT_EQ(table.text(2),
            "  phase            MiB  where\n"
            "  build_model     1.00  here\n"
            "  x            1234.50\n");
}

TEST(Table, WrapsTitlesAndTheLongestTextWhereThereIsNoRoom) {
  Table table({{"term", Align::kLeft}, {"at least"}, {"note", Align::kLeft}});
  table.add_row({"context", "0.27", "as published for this generation of GPUs"});
  EXPECT_EQ(table.text(0, 40),
            "            at\n"
            "term     least  note\n"
            "context   0.27  as published for this\n"
            "                generation of GPUs\n");
}

TEST(Table, StandsInBlocksWhereItIsTooWide) {
  Table table({{"rank"}, {"allocated"}, {"reserved"}, {"total"}});
  table.add_row({"0", "54.59", "57.02", "58.32"});
  EXPECT_EQ(table.text(1, 26),
            " rank  allocated  reserved\n"
            "    0      54.59     57.02\n"
            " rank  total\n"
            "    0  58.32\n");
}

TEST(Table, RefusesARowOfAnotherWidth) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), std::logic_error);
}

TEST(TitledTable, IsWrittenInEachFormat) {
  Table table({{"part", Align::kLeft}, {"GiB"}});
  table.add_row({"a", "1"});
  const TitledTable titled{.title = "Memory", .table = table, .notes = {"of a rank"}};
  EXPECT_EQ(titled.in(), "Memory\n  part  GiB\n  a       1\n  of a rank\n");
  EXPECT_EQ(titled.in({.format = TableFormat::kMarkdown}),
            "### Memory\n\n| part | GiB |\n| --- | ---: |\n| a | 1 |\n\nof a rank\n");
  EXPECT_EQ(titled.in({.format = TableFormat::kCsv}), "# Memory\npart,GiB\na,1\n# of a rank\n");
  EXPECT_EQ(tables_in({titled, titled}), titled.in() + "\n" + titled.in());
}

TEST(Table, InCsvHasPlainNumbersAndANameForEachColumn) {
  Table table({{"parameters"}, {"what", Align::kLeft}, {"", Align::kLeft, "", "note"}});
  table.add_row({"4,015,263,744", "allocator, reserved", ""});
  table.add_row({"-1,234.5", "1,2", "worst"});
  EXPECT_EQ(table.csv(),
            "parameters,what,note\n4015263744,\"allocator, reserved\",\n-1234.5,\"1,2\",worst\n");
}

TEST(Table, HasItsSpacesInTextAlone) {
  Table table({{"rank"}, {"", Align::kLeft, "", "note"}});
  table.add_row({"0", " worst"});
  table.add_row({"1", "*"});
  EXPECT_EQ(table.text(), "rank\n   0   worst\n   1  *\n");
  EXPECT_EQ(table.csv(), "rank,note\n0,worst\n1,*\n");
  EXPECT_EQ(table.markdown(), "| rank |  |\n| ---: | --- |\n| 0 | worst |\n| 1 | * |\n");
}

}  // namespace
}  // namespace sim
