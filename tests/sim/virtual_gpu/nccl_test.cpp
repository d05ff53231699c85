#include <gtest/gtest.h>

extern "C" {
struct Id {
  char bytes[128];
};
int ncclGetVersion(int* version);
int ncclGetUniqueId(Id* id);
int ncclCommInitRank(void** communicator, int ranks, Id id, int rank);
int ncclCommSplit(void* communicator, int color, int key, void** part, void* config);
int ncclCommCount(void* communicator, int* ranks);
int ncclCommUserRank(void* communicator, int* rank);
int ncclCommDestroy(void* communicator);
int ncclAllReduce();
int ncclMemAlloc();
}

namespace {

TEST(Nccl, MakesACommunicatorOfAnySizeAlone) {
  Id id;
  ASSERT_EQ(ncclGetUniqueId(&id), 0);
  void* communicator = nullptr;
  ASSERT_EQ(ncclCommInitRank(&communicator, 16384, id, 77), 0);
  int ranks = 0;
  int rank = 0;
  EXPECT_EQ(ncclCommCount(communicator, &ranks), 0);
  EXPECT_EQ(ncclCommUserRank(communicator, &rank), 0);
  EXPECT_EQ(ranks, 16384);
  EXPECT_EQ(rank, 77);
  EXPECT_EQ(ncclAllReduce(), 0);
  EXPECT_EQ(ncclCommDestroy(communicator), 0);
}

TEST(Nccl, DoesNotKnowHowManyRanksShareAColor) {
  void* whole = nullptr;
  void* part = nullptr;
  ASSERT_EQ(ncclCommInitRank(&whole, 8, Id{}, 0), 0);
  ASSERT_EQ(ncclCommSplit(whole, 1, 0, &part, nullptr), 0);
  int ranks = 0;
  EXPECT_NE(ncclCommCount(part, &ranks), 0);
  EXPECT_EQ(ncclCommDestroy(part), 0);
  EXPECT_EQ(ncclCommDestroy(whole), 0);
}

TEST(Nccl, HasTheVersionOfTheWheel) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), 0);
  EXPECT_EQ(version, 22809);
}

TEST(Nccl, RefusesItsOwnAllocator) { EXPECT_EQ(ncclMemAlloc(), 5); }

}  // namespace
