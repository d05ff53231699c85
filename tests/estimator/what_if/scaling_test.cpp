#include "estimator/what_if/scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace estimator {
namespace {

const std::vector<double> kDoubling = {1, 2, 4, 8};

std::vector<double> values(const std::function<double(double)>& law) {
  std::vector<double> y;
  for (const double x : kDoubling) y.push_back(law(x));
  return y;
}

std::string words_of(const std::vector<double>& y) {
  return scaling_words(kDoubling, y, fit_power_law(kDoubling, y));
}

TEST(PowerLaw, FindsExponentAndOffsetOfALine) {
  const auto law = fit_power_law(kDoubling, values([](double x) { return 60 + 11 * x; }));
  ASSERT_TRUE(law);
  EXPECT_EQ(law->exponent, 1);
  EXPECT_NEAR(law->offset, 60, 1e-9);
  EXPECT_NEAR(law->factor, 11, 1e-9);
  EXPECT_NEAR(*law->reaches(93), 3, 1e-9);  // 60 + 11 x 3
}

TEST(PowerLaw, FindsAFractionalExponentBesideAnOffset) {
  const auto law = fit_power_law(kDoubling, values([](double x) { return 5 + std::pow(x, 1.5); }));
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->exponent, 1.5, 0.01);
}

TEST(PowerLaw, TakesTheWholeExponentThatIsAsGood) {
  EXPECT_EQ(fit_power_law({1, 2, 4}, {81.5, 103.7, 146.0})->exponent, 1);
}

// GPT-2's step on one H100 with 256 to 1,024 tokens is linear, which two of three do not show.
TEST(PowerLaw, OfTwoPointsIsALineThatSaysNothingOfHowItGoesOn) {
  const auto law = fit_power_law({2, 4}, {3, 12});
  ASSERT_TRUE(law);
  EXPECT_NEAR(*law->reaches(7.5), 3, 1e-9);
  EXPECT_EQ(scaling_words({2, 4}, {3, 12}, law), "grows; a third value says how");
  EXPECT_EQ(scaling_words({4, 2}, {3, 12}, law), "falls; a third value says how");
}

TEST(PowerLaw, DoesNotDependOnTheOrderOfThePoints) {
  const auto law = fit_power_law({4, 1, 2}, {16, 1, 4});
  ASSERT_TRUE(law);
  EXPECT_EQ(law->exponent, 2);
}

TEST(PowerLaw, IsNoneOfWhatGoesUpAndDownOrStays) {
  EXPECT_FALSE(fit_power_law(kDoubling, {1, 3, 2, 4}));
  EXPECT_FALSE(fit_power_law(kDoubling, {100, 100.5, 100.2, 100.6}));
}

TEST(PowerLaw, NeverReachesWhatLiesBelowItsOffset) {
  EXPECT_FALSE((PowerLaw{.offset = 60, .factor = 11, .exponent = 1}.reaches(50)));
}

TEST(ScalingWords, NameTheClass) {
  EXPECT_EQ(words_of(values([](double x) { return 7 + 3 * x; })), "linear");
  EXPECT_EQ(words_of(values([](double x) { return 1 + x * x; })), "quadratic");
  EXPECT_EQ(words_of(values([](double x) { return std::pow(x, 1.4); })),
            "between linear and quadratic");
  EXPECT_EQ(words_of(values([](double x) { return 1 + 1 / x; })), "falls as the inverse");
  EXPECT_EQ(words_of(values([](double x) { return std::sqrt(x); })), "less than linear");
  EXPECT_EQ(words_of(values([](double x) { return 2 - 1 / x; })), "levels off");
  EXPECT_EQ(words_of({3, 3, 3, 3}), "constant");
  EXPECT_EQ(words_of({1, 3, 2, 4}), "up and down");
}

}  // namespace
}  // namespace estimator
