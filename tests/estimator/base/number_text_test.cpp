#include "estimator/base/number_text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace estimator {
namespace {

TEST(ParseNumber, TakesAWholeTextThatIsOneNumber) {
  EXPECT_EQ(parse_number<int64_t>("8192"), 8192);
  EXPECT_EQ(parse_number<int64_t>("-1"), -1);
  EXPECT_EQ(parse_number<double>("2.5e3"), 2500);
}

TEST(ParseNumber, IsEmptyForAnythingElse) {
  for (const char* text : {"", "8x", " 8", "8 ", "+8", "x", "1.5", "0x10", "9223372036854775808"}) {
    EXPECT_EQ(parse_number<int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<double>("1.5x"), std::nullopt);
}

}  // namespace
}  // namespace estimator
