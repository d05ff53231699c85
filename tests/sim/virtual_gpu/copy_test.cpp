#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "sim/virtual_gpu/control.h"

namespace {

class Copy : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaMalloc(&device_, 1 << 20), cudaSuccess);
    std::iota(host_.begin(), host_.end(), 1);
  }
  void TearDown() override { cudaFree(device_); }

  void* device_ = nullptr;
  std::vector<int> host_ = std::vector<int>(16);
};

const std::vector<int> kZeros(16);

TEST_F(Copy, FromTheDeviceReadsZerosAndIsCounted) {
  const uint64_t before = onerank_virtual_gpu_host_reads();
  EXPECT_EQ(cudaMemcpy(host_.data(), device_, 64, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host_, kZeros);
  EXPECT_EQ(onerank_virtual_gpu_host_reads() - before, 1u);
}

TEST_F(Copy, OfUnknownBytesGivesTheAnswerThatWasPutThere) {
  const int64_t number = -3;
  EXPECT_EQ(onerank_virtual_gpu_answer_here(&number), nullptr);
  int16_t narrow = 0;
  EXPECT_EQ(cudaMemcpy(&narrow, device_, sizeof narrow, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(narrow, -3);
  EXPECT_EQ(cudaMemcpy(host_.data(), device_, 64, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host_, kZeros) << "is no single number";
  EXPECT_EQ(onerank_virtual_gpu_answer_here(nullptr), &number);
  EXPECT_EQ(cudaMemcpy(&narrow, device_, sizeof narrow, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(narrow, 0);
}

TEST_F(Copy, OfDefaultKindKnowsWhereThePointersPoint) {
  const std::vector<int> original = host_;
  EXPECT_EQ(cudaMemcpy(device_, host_.data(), 64, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(host_, original);
  std::vector<int> other(16);
  EXPECT_EQ(cudaMemcpy(other.data(), host_.data(), 64, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(other, original);
  EXPECT_EQ(cudaMemcpyAsync(other.data(), device_, 64, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(other, kZeros);
}

TEST_F(Copy, OfRowsLeavesWhatIsBetweenThem) {
  // Two rows of two ints each, four ints apart.
  EXPECT_EQ(cudaMemcpy2D(host_.data(), 16, device_, 8, 8, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::vector<int>(host_.begin(), host_.begin() + 8),
            (std::vector<int>{0, 0, 3, 4, 0, 0, 7, 8}));
}

TEST_F(Copy, MemsetFillsHostMemoryOnly) {
  EXPECT_EQ(cudaMemset(device_, 1, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaMemset(host_.data(), 0, 64), cudaSuccess);
  EXPECT_EQ(host_, kZeros);
}

}  // namespace
