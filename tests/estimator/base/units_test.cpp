#include "estimator/base/units.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

TEST(Units, GroupDigits) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(1048576), "1,048,576");
  EXPECT_EQ(with_commas(-1234), "-1,234");
  EXPECT_EQ(whole_with_commas(1234567.8), "1,234,567");
  EXPECT_EQ(whole_with_commas(2.5e29), "2.5e+29");
  EXPECT_EQ(amount_with_commas(1234567.8), "1,234,567");
  EXPECT_EQ(amount_with_commas(10.7), "10");
  EXPECT_EQ(amount_with_commas(3.44), "3.4");
  EXPECT_EQ(amount_with_commas(0.0567), "0.057");
  EXPECT_EQ(amount_with_commas(0), "0");
}

TEST(Units, BytesAreBinary) {
  EXPECT_EQ(format_gib(85029027840), "79.19 GiB");
  EXPECT_EQ(format_gib(-kGiB), "-1.00 GiB");
  EXPECT_EQ(format_mib(851968000), "812.50");
}

TEST(Units, DurationsChooseTheirUnit) {
  EXPECT_EQ(format_duration(1.2e-6), "1.2 us");
  EXPECT_EQ(format_duration(3.45e-3), "3.45 ms");
  EXPECT_EQ(format_duration(6.78), "6.78 s");
  EXPECT_EQ(format_duration(4.5 * 3600), "4.5 h");
  EXPECT_EQ(format_duration(54.2 * 86400), "54.2 days");
}

TEST(Units, RoundUpToMultiples) {
  EXPECT_EQ(divide_up(10, 3), 4);
  EXPECT_EQ(divide_up(9, 3), 3);
  EXPECT_EQ(round_up(50257, 128), 50304);
  EXPECT_EQ(round_up(0, 128), 0);
}

}  // namespace
}  // namespace estimator
