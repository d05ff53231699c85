#include "estimator/plan/rule_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

namespace estimator {

std::string divisors_near(int64_t value, int64_t wanted) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= value && d <= 100'000; ++d) {
    if (value % d == 0) divisors.push_back(d);
  }
  std::stable_sort(divisors.begin(), divisors.end(), [&](int64_t a, int64_t b) {
    return std::abs(a - wanted) < std::abs(b - wanted);
  });
  divisors.resize(std::min<std::size_t>(divisors.size(), 3));
  std::sort(divisors.begin(), divisors.end());
  return fmt::format("{}", fmt::join(divisors, ", "));
}

}  // namespace estimator
