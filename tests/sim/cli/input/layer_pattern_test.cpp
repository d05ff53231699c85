#include "sim/cli/input/layer_pattern.h"

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

}  // namespace
}  // namespace sim
