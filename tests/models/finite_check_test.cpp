#include "models/data_parallel/finite_check.h"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <cmath>
#include <stdexcept>

namespace models {
namespace {

at::Tensor scalar(double value) { return at::full({}, value); }

TEST(CheckFinite, LetsNumbersPass) {
  EXPECT_NO_THROW(check_finite(scalar(0), "the loss"));
  EXPECT_NO_THROW(check_finite(scalar(-1e30), "the loss"));
}

TEST(CheckFinite, SaysWhatIsNone) {
  const auto complaint = [](double value) -> std::string {
    try {
      check_finite(scalar(value), "the loss");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint(std::nan("")), "found NaN in the loss");
  EXPECT_EQ(complaint(-INFINITY), "found Inf in the loss");
}

}  // namespace
}  // namespace models
