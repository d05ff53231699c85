#include "sim/virtual_gpu/cudart/shadow.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace virtual_gpu {
namespace {

constexpr uint64_t kBase = uint64_t{1} << 48;

class ShadowOfMemory : public testing::Test {
 protected:
  static constexpr size_t kLargestBytes = 1024;

  ShadowOfMemory() { shadow_.enable(kLargestBytes); }

  void write(uint64_t offset, std::vector<char> bytes) {
    shadow_.write(kBase + offset, bytes.data(), bytes.size());
  }
  /// The bytes, or nothing if one of them is not known.
  std::vector<char> known(uint64_t offset, size_t bytes) const {
    std::vector<char> value(bytes, 'x');
    return shadow_.read(kBase + offset, value.data(), bytes) ? value : std::vector<char>{};
  }

  Shadow shadow_;
};

using Bytes = std::vector<char>;

TEST_F(ShadowOfMemory, GivesBackWhatTheHostWrote) {
  write(0, {1, 2, 3, 4});
  EXPECT_EQ(known(0, 4), (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(known(1, 2), (Bytes{2, 3}));
  EXPECT_EQ(known(2, 3), Bytes{});
}

TEST_F(ShadowOfMemory, ReadsZerosWhereNothingIsKnown) {
  write(1, {7});
  std::array<char, 3> value = {9, 9, 9};
  EXPECT_FALSE(shadow_.read(kBase, value.data(), value.size()));
  EXPECT_EQ(value, (std::array<char, 3>{0, 7, 0}));
}

TEST_F(ShadowOfMemory, KeepsWhatALaterWriteLeaves) {
  write(0, {1, 2, 3, 4, 5, 6});
  write(2, {8, 9});
  EXPECT_EQ(known(0, 6), (Bytes{1, 2, 8, 9, 5, 6}));
  write(1, {7});
  EXPECT_EQ(known(0, 6), (Bytes{1, 7, 8, 9, 5, 6}));
}

TEST_F(ShadowOfMemory, ForgetsWhatTheDeviceMadeAndKeepsWhatTheHostSent) {
  write(0, {1, 2});
  shadow_.fill(kBase + 2, 0, 2);
  const char computed[] = {9, 9};
  shadow_.write(kBase + 4, computed, 2, Shadow::Origin::kDevice);
  shadow_.copy(kBase + 100, kBase, 6);
  shadow_.forget_computed();
  for (const uint64_t place : {0, 100}) {
    EXPECT_EQ(known(place, 2), (Bytes{1, 2}));
    EXPECT_EQ(known(place + 2, 1), Bytes{});
    EXPECT_EQ(known(place + 4, 1), Bytes{});
  }
  shadow_.copy(kBase + 200, kBase, 6);
  EXPECT_EQ(known(202, 1), Bytes{}) << "a copy made it known again";
  shadow_.fill(kBase + 2, 3, 2);
  EXPECT_EQ(known(0, 4), (Bytes{1, 2, 3, 3})) << "what is made later is known";
}

TEST_F(ShadowOfMemory, IsCarriedByCopiesWithItsGaps) {
  write(0, {1, 2});
  write(4, {5, 6});
  write(100, {9, 9, 9, 9, 9, 9});
  shadow_.copy(kBase + 100, kBase, 6);
  EXPECT_EQ(known(100, 2), (Bytes{1, 2}));
  EXPECT_EQ(known(104, 2), (Bytes{5, 6}));
  EXPECT_EQ(known(102, 2), Bytes{});
}

TEST_F(ShadowOfMemory, IsCarriedByACopyOverItself) {
  write(0, {1, 2, 3, 4});
  shadow_.copy(kBase + 2, kBase, 4);
  EXPECT_EQ(known(0, 6), (Bytes{1, 2, 1, 2, 3, 4}));
}

TEST_F(ShadowOfMemory, KnowsOnlyWhatItCouldGiveBackWhole) {
  write(0, {1, 2});
  write(3, {4});
  EXPECT_TRUE(shadow_.knows(kBase, 2));
  EXPECT_TRUE(shadow_.knows(kBase + 1, 1));
  EXPECT_FALSE(shadow_.knows(kBase, 4));
}

TEST_F(ShadowOfMemory, OfACopyStaysWhenItsSourceIsForgotten) {
  write(0, {1, 2, 3, 4});
  shadow_.copy(kBase + 100, kBase + 1, 2);
  shadow_.forget(kBase, 4);
  EXPECT_EQ(known(100, 2), (Bytes{2, 3}));
  EXPECT_EQ(known(1, 2), Bytes{});
}

TEST_F(ShadowOfMemory, ForgetsOnlyWhatWasWrittenBefore) {
  write(0, {1});
  const uint64_t kernel_starts = shadow_.time();
  write(1, {2});
  shadow_.forget(kBase, 2, kernel_starts);
  EXPECT_EQ(known(0, 1), Bytes{});
  EXPECT_EQ(known(1, 1), Bytes{2});
  shadow_.forget(kBase, 2);
  EXPECT_EQ(known(1, 1), Bytes{});
}

TEST_F(ShadowOfMemory, DoesNotKeepDataButForgetsWhatItOverwrites) {
  write(0, {1, 2});
  write(0, Bytes(kLargestBytes + 1));
  EXPECT_EQ(known(0, 1), Bytes{});
}

TEST_F(ShadowOfMemory, KeepsDataOfWhichSomebodyTellsIt) {
  const std::vector<char> data(kLargestBytes + 1, 3);
  shadow_.tell(kBase, data.data(), data.size(), Shadow::Origin::kDevice);
  EXPECT_EQ(known(0, data.size()), data);
  shadow_.forget_computed();
  EXPECT_EQ(known(0, data.size()), Bytes{});
}

TEST_F(ShadowOfMemory, KnowsAFill) {
  shadow_.fill(kBase, 1, 3);
  EXPECT_EQ(known(0, 3), (Bytes{1, 1, 1}));
}

TEST_F(ShadowOfMemory, KeepsBytesThatAreAllEqualThroughCutsAndCopies) {
  write(0, Bytes(8, 5));
  write(3, {1, 2});
  shadow_.copy(kBase + 100, kBase + 2, 5);
  EXPECT_EQ(known(0, 8), (Bytes{5, 5, 5, 1, 2, 5, 5, 5}));
  EXPECT_EQ(known(100, 5), (Bytes{5, 1, 2, 5, 5}));
}

TEST_F(ShadowOfMemory, TellsWhetherAnyOfItIsTheHosts) {
  write(0, {1});
  shadow_.fill(kBase + 1, 0, 2);
  EXPECT_EQ(shadow_.knows(kBase, 3), Shadow::Origin::kHost);
  EXPECT_EQ(shadow_.knows(kBase + 1, 2), Shadow::Origin::kDevice);
  EXPECT_EQ(shadow_.knows(kBase, 4), std::nullopt);
}

TEST(Shadow, KnowsNothingUntilSomebodyCanTellWhatKernelsWrite) {
  Shadow shadow;
  const char value = 1;
  char read = 2;
  shadow.write(kBase, &value, 1);
  EXPECT_FALSE(shadow.read(kBase, &read, 1));
  EXPECT_EQ(read, 0);
}

}  // namespace
}  // namespace virtual_gpu
