#include "sim/cli/values/strict_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const estimator::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(StrictNumber, ReadsWholeNumbers) {
  EXPECT_EQ(parse_whole_number("8", "--tp"), 8);
  EXPECT_EQ(parse_whole_number("-3", "--tp"), -3);
  EXPECT_EQ(parse_whole_number("9223372036854775807", "--x"), INT64_MAX);
}

TEST(StrictNumber, ReadsTokensAsPeopleWriteThem) {
  EXPECT_EQ(parse_whole_number("15.6e12", "--train-tokens"), 15'600'000'000'000);
  EXPECT_EQ(parse_whole_number("3e2", "--x"), 300);
}

TEST(StrictNumber, ReadsThousandsAsPeopleWriteThem) {
  EXPECT_EQ(parse_whole_number("8k", "--seq"), 8192);
  EXPECT_EQ(parse_whole_number("128K", "--seq"), 131072);
  EXPECT_EQ(parse_whole_number("4M", "--x"), 4'000'000);
  EXPECT_EQ(parse_whole_number("15T", "--train-tokens"), 15'000'000'000'000);
  EXPECT_EQ(parse_whole_number("1.5B", "--x"), 1'500'000'000);
  EXPECT_EQ(parse_whole_number("1,048,576", "--x"), 1'048'576);
  for (const char* text :
       {"k", "1,2", "1,0000", "1234,567", ",123", "1,", "0.0001k", "1e20T", "8kk"}) {
    EXPECT_NE(error_of([&] { parse_whole_number(text, "--tp"); }), "") << text;
  }
}

TEST(StrictNumber, RefusesWhatIsNoWholeNumberAndNamesTheFlagAndTheText) {
  for (const char* text : {"8x",
                           "x",
                           "",
                           " 8",
                           "8 ",
                           "+8",
                           "nan",
                           "inf",
                           "1.5",
                           "1e3.5",
                           "0x10",
                           "9223372036854775808",
                           "1e300",
                           "--pp"}) {
    EXPECT_THAT(error_of([&] { parse_whole_number(text, "--tp"); }),
                HasSubstr("--tp = \"" + std::string(text) + "\""))
        << text;
  }
}

TEST(StrictNumber, ReadsFiniteNumbersOnly) {
  EXPECT_EQ(parse_real_number("0.1", "--x"), 0.1);
  EXPECT_EQ(parse_real_number("1e-5", "--x"), 1e-5);
  for (const char* text : {"nan", "inf", "-inf", "", "0.1x", "1e999"}) {
    EXPECT_THAT(error_of([&] { parse_real_number(text, "--x"); }), HasSubstr("--x")) << text;
  }
}

}  // namespace
}  // namespace sim
