#include "estimator/base/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <vector>

namespace estimator {

void for_each_in_parallel(std::size_t count,
                          int64_t at_once,
                          const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::future<void>> others;
  const std::size_t threads =
      std::min(count, static_cast<std::size_t>(std::max<int64_t>(at_once, 1)));
  for (std::size_t thread = 1; thread < threads; ++thread) {
    others.push_back(std::async(std::launch::async, take_turns));
  }
  take_turns();
  for (std::future<void>& other : others) other.get();
}

}  // namespace estimator
