// Numbers that follow from a seed, for mutations.
#pragma once

#include <cstdint>
#include <random>

namespace fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// A number from 0 to `count` - 1; 0 for none.
  uint64_t below(uint64_t count) { return count == 0 ? 0 : engine_() % count; }
  /// True once in `count` times.
  bool one_in(uint64_t count) { return below(count) == 0; }
  /// An element of what is not empty.
  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace fuzz
