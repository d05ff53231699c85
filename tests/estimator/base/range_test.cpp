#include "estimator/base/range.h"

#include <gtest/gtest.h>

#include "estimator/base/errors.h"

namespace estimator {
namespace {

std::string error_of(int64_t value, Range range) {
  try {
    require_in_range(value, range, "--jobs");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Range, RefusesWhatIsOutsideWithBothEnds) {
  EXPECT_EQ(error_of(1, {1, 1024}), "");
  EXPECT_EQ(error_of(1024, {1, 1024}), "");
  EXPECT_EQ(error_of(1025, {1, 1024}),
            "error: a number is out of range\n  --jobs = 1025\n"
            "  help: use a number from 1 to 1,024\n");
}

TEST(Range, SaysOneEndWhereThereIsNoOther) {
  EXPECT_EQ(error_of(0, {.least = 1, .example = "8 for a node"}),
            "error: a number is out of range\n  --jobs = 0\n"
            "  help: use a number of at least 1: 8 for a node\n");
}

}  // namespace
}  // namespace estimator
