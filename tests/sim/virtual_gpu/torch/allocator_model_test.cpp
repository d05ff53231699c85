// PyTorch's allocator on the virtual GPU against a model of it, step by step through long random
// programs that fill the device again and again.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <random>
#include <vector>

#include "allocator_model.h"
#include "torch_process.h"

namespace virtual_gpu {

// Not in the namespace below: GoogleTest looks for it in that of the class.
std::ostream& operator<<(std::ostream& out, const AllocatorModel::Statistics& statistics) {
  return out << "allocated " << statistics.allocated_bytes << ", reserved "
             << statistics.reserved_bytes << ", inactive split " << statistics.inactive_split_bytes
             << ", segments " << statistics.segments;
}

namespace {

constexpr int kSteps = 20'000;

AllocatorModel::Statistics real_statistics() {
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0);
  return {.allocated_bytes = stats.allocated_bytes[kAll].current,
          .reserved_bytes = stats.reserved_bytes[kAll].current,
          .inactive_split_bytes = stats.inactive_split_bytes[kAll].current,
          .segments = stats.segment[kAll].current};
}

/// Sizes of every pool and segment rule: from a byte to 200 MiB, each order of magnitude as often.
int64_t random_bytes(std::mt19937_64& random) {
  const double exponent = std::uniform_real_distribution<double>(0, 27.6)(random);
  const auto bytes = static_cast<int64_t>(std::exp2(exponent));
  return std::bernoulli_distribution(0.3)(random) ? (bytes + 511) / 512 * 512 : bytes;
}

class Comparison {
 public:
  explicit Comparison(const AllocatorModel::Settings& settings) : model_(settings) {}

  void run(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      take_step(random);
      EXPECT_EQ(real_statistics(), model_.statistics()) << "step " << step << ", seed " << seed;
    }
    EXPECT_GT(times_full_, 10);
  }

 private:
  void take_step(std::mt19937_64& random) {
    const double choice = std::uniform_real_distribution<double>(0, 1)(random);
    if (choice < 0.001) {
      c10::getDeviceAllocator(at::kCUDA)->emptyCache();
      model_.empty_cache();
    } else if (choice < 0.52 || alive_.empty()) {
      allocate(random_bytes(random));
    } else {
      free_one(std::uniform_int_distribution<size_t>(0, alive_.size() - 1)(random));
    }
  }

  void allocate(int64_t bytes) {
    const auto expected = model_.allocate(bytes);
    at::Tensor tensor;
    try {
      tensor = at::empty({bytes}, at::TensorOptions().device(at::kCUDA).dtype(at::kByte));
    } catch (const c10::OutOfMemoryError&) {
      ++times_full_;
    }
    ASSERT_EQ(tensor.defined(), expected.has_value()) << bytes << " bytes";
    if (expected) alive_.push_back({std::move(tensor), *expected});
  }

  void free_one(size_t index) {
    std::swap(alive_[index], alive_.back());
    model_.free(alive_.back().expected);
    alive_.pop_back();
  }

  struct Pair {
    at::Tensor tensor;
    AllocatorModel::Handle expected;
  };
  AllocatorModel model_;
  std::vector<Pair> alive_;
  int times_full_ = 0;
};

VirtualGpuSpec small_gpu() {
  VirtualGpuSpec spec = h100();
  spec.memory_bytes = 512 * kMiB;
  return spec;
}

TEST(TorchAllocatorAgainstItsModel, AgreesAtEachStepOfRandomPrograms) {
  in_torch_process(small_gpu(), [] { Comparison({.capacity = 512 * kMiB}).run(1); });
}

TEST(TorchAllocatorAgainstItsModel, AgreesWithLargeBlocksThatAreNeverSplit) {
  in_torch_process(small_gpu(),
                   [] { Comparison({.capacity = 512 * kMiB, .max_split = 40 * kMiB}).run(2); },
                   {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:40"}});
}

}  // namespace
}  // namespace virtual_gpu
