#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/virtual_gpu/control.h"

namespace {

/// 2 ms for each record between two; of the tenth and later ones nothing is known.
double two_milliseconds_each(uint64_t start, uint64_t end, void* first) {
  const uint64_t known = *static_cast<uint64_t*>(first) + 9;
  if (end > known) return std::nan("");
  return 2e-3 * static_cast<double>(end - start);
}

TEST(Event, TimesAreSmallButNeverZero) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle)
      << "not recorded";
  EXPECT_EQ(cudaEventRecord(start, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GT(milliseconds, 0);
  // Triton's do_bench: five launches between two events tell how often 25 and then 100 ms hold one.
  EXPECT_LT((25 + 100) / (milliseconds / 5), 1000);
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  cudaGetLastError();
}

TEST(Event, HasTheTimesOfTheHostProgramsTimer) {
  cudaEvent_t start = nullptr, end = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  static uint64_t first = 0;
  onerank_virtual_gpu_set_event_sink(
      [](const onerank_virtual_gpu_event* event, void*) {
        if (event->is_timed != 0 && first == 0) first = event->record;
      },
      nullptr);
  onerank_virtual_gpu_set_timer(two_milliseconds_each, &first);
  float milliseconds = 0;
  ASSERT_EQ(cudaEventRecord(start, nullptr), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_FLOAT_EQ(milliseconds, 6);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_EQ(milliseconds, 1) << "it is not known";
  onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
}

TEST(Event, WithoutTimingHasNoTime) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  cudaGetLastError();
}

}  // namespace
