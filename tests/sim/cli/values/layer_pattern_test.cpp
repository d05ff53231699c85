#include "sim/cli/values/layer_pattern.h"

#include <gtest/gtest.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using Pattern = std::vector<int64_t>;

Pattern parsed(const std::string& text) { return parse_layer_pattern(text, "--moe-layer-freq"); }

TEST(LayerPattern, IsANumberOrNumbersWithCommas) {
  EXPECT_EQ(parsed("2"), Pattern{2});
  EXPECT_EQ(parsed("0,1, 1"), (Pattern{0, 1, 1}));
}

TEST(LayerPattern, ReadsMegatronsExpressions) {
  EXPECT_EQ(parsed("([0]*1+[1]*3)"), (Pattern{0, 1, 1, 1}));
  EXPECT_EQ(parsed("[0]*2+[1]"), (Pattern{0, 0, 1}));
  EXPECT_EQ(parsed("([0]*1+[1]*2)*1"), (Pattern{0, 1, 1}));
  EXPECT_EQ(parsed("([1, 0]) * 2"), (Pattern{1, 0, 1, 0}));
}

TEST(LayerPattern, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"", "([0]*3", "[0]*", "[]", "[0]+", "x", "1 2", "[1]*99999999", "-1"}) {
    EXPECT_THROW(parsed(text), estimator::UserError) << text;
  }
}

TEST(LayerPattern, RefusesDepthLengthAndWorkWithoutBound) {
  std::string ones = "([1]", doublings = "([0]*99999)", zeros = "0";
  for (int i = 0; i < 9'000; ++i) ones += "+[0]*99999";
  for (int i = 0; i < 10'000; ++i) doublings += "*1";
  for (int i = 0; i < 100'000; ++i) zeros += ",0";
  for (const std::string& text : {std::string(100'000, '(') + "[1]",
                                  ones + ")",
                                  doublings,
                                  zeros,
                                  std::string("[0]*99999+[1]*2")}) {
    EXPECT_THROW(parsed(text), estimator::UserError) << text.substr(0, 20);
  }
  EXPECT_EQ(parsed(std::string(60, '(') + "[1]" + std::string(60, ')')), Pattern{1});
  std::string sum = "[1]";
  for (int i = 1; i < 10'000; ++i) sum += "+[1]";
  EXPECT_EQ(parsed(sum).size(), 10'000u);
}

TEST(LayerPattern, IsShownShortInItsMessage) {
  try {
    parsed(std::string(100'000, '('));
    FAIL();
  } catch (const estimator::UserError& error) {
    EXPECT_LT(std::string(error.what()).size(), 300u);
  }
}

}  // namespace
}  // namespace sim
