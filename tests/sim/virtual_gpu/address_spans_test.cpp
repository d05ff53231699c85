#include "sim/virtual_gpu/cudart/address_spans.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

namespace virtual_gpu {
namespace {

constexpr uint64_t kOneMiB = uint64_t{1} << 20;

// As NVIDIA's driver placed the first parameters of a layer on an H200.
TEST(AddressSpans, AreEachBelowTheOneBefore) {
  constexpr uint64_t kEnd = uint64_t{1} << 40;
  AddressSpans spans(kEnd);
  const uint64_t first = spans.take(126 * kOneMiB);
  EXPECT_EQ(first, kEnd - (32 + 128) * kOneMiB);
  EXPECT_EQ(spans.take(2 * kOneMiB), first + 126 * kOneMiB);
  EXPECT_EQ(spans.take(20 * kOneMiB), kEnd - 22 * kOneMiB);  // what the context leaves
  EXPECT_EQ(spans.take(28 * kOneMiB), first - 32 * kOneMiB);
  EXPECT_EQ(spans.take(14 * kOneMiB), first - 64 * kOneMiB);
  EXPECT_EQ(spans.take(28 * kOneMiB), first - 96 * kOneMiB);
  EXPECT_EQ(spans.take(14 * kOneMiB), first - 50 * kOneMiB);
}

/// The rule word by word: what is left, by address, looked through from the lowest.
class LookedThrough {
 public:
  explicit LookedThrough(uint64_t end)
      : lowest_(end - 32 * kOneMiB), left_{{end - 22 * kOneMiB, 22 * kOneMiB}} {}

  uint64_t take(uint64_t bytes) {
    auto place = left_.begin();
    while (place != left_.end() && place->second < bytes) ++place;
    if (place == left_.end()) place = add_span((bytes + 32 * kOneMiB - 1) / (32 * kOneMiB));
    const auto [address, free_bytes] = *place;
    left_.erase(place);
    if (free_bytes > bytes) left_[address + bytes] = free_bytes - bytes;
    return address;
  }

 private:
  std::map<uint64_t, uint64_t>::iterator add_span(uint64_t spans) {
    lowest_ -= spans * 32 * kOneMiB;
    return left_.emplace(lowest_, spans * 32 * kOneMiB).first;
  }

  uint64_t lowest_;
  std::map<uint64_t, uint64_t> left_;
};

TEST(AddressSpans, GiveTheLowestAddressThatFits) {
  constexpr uint64_t kEnd = uint64_t{1} << 45;
  AddressSpans spans(kEnd);
  LookedThrough expected(kEnd);
  std::mt19937 random(7);
  std::uniform_int_distribution<uint64_t> pages(1, 40);
  for (int taken = 0; taken < 3000; ++taken) {
    const uint64_t bytes = pages(random) * 2 * kOneMiB;
    ASSERT_EQ(spans.take(bytes), expected.take(bytes)) << taken;
  }
}

// As in a large mixture of experts: segments of 20 MiB, each of which leaves 12 MiB of its span.
TEST(AddressSpans, AreFoundAtOnceAlsoWhereManyHaveSomethingLeft) {
  AddressSpans spans(uint64_t{1} << 45);
  const auto begin = std::chrono::steady_clock::now();
  for (int taken = 0; taken < 80'000; ++taken) spans.take(20 * kOneMiB);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

}  // namespace
}  // namespace virtual_gpu
