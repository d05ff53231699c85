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

TEST(Table, RefusesARowOfAnotherWidth) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), std::logic_error);
}

}  // namespace
}  // namespace sim
