#include "estimator/base/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace estimator {
namespace {

TEST(ForEachInParallel, DoesEachWorkOnceWhateverTheNumberOfThreads) {
  for (const int64_t at_once : {0, 1, 3, 100}) {
    std::vector<int> done(20);
    for_each_in_parallel(done.size(), at_once, [&](std::size_t i) { ++done[i]; });
    EXPECT_EQ(done, std::vector<int>(20, 1)) << at_once;
  }
}

TEST(ForEachInParallel, RunsAsManyAtTheSameTimeAsItMay) {
  std::atomic<int> begun = 0;
  for_each_in_parallel(2, 2, [&](std::size_t) {
    ++begun;
    while (begun < 2) {  // for ever, if one came after the other
    }
  });
  EXPECT_EQ(begun, 2);
}

TEST(ForEachInParallel, ThrowsWhatAWorkThrew) {
  const auto fail = [](std::size_t i) {
    if (i == 5) throw std::runtime_error("five");
  };
  for (const int64_t at_once : {1, 2}) {
    EXPECT_THROW(for_each_in_parallel(9, at_once, fail), std::runtime_error);
  }
}

}  // namespace
}  // namespace estimator
