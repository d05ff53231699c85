// Events where the host knows only what it has waited for (events=ordered).

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class OrderedEvents : public testing::Test {
 protected:
  void SetUp() override {
    for (cudaStream_t* stream : {&first_, &second_}) {
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
    ASSERT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  void TearDown() override {
    for (const cudaEvent_t event : events_) EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (const cudaStream_t stream : {first_, second_}) {
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    cudaGetLastError();
  }

  /// A new event, recorded on the stream.
  cudaEvent_t record(cudaStream_t stream, unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    events_.push_back(event);
    return event;
  }
  void work(cudaStream_t stream) {
    EXPECT_EQ(cudaMemsetAsync(memory_, 0, kBytes, stream), cudaSuccess);
  }
  static bool has_happened(cudaEvent_t event) {
    const cudaError_t answer = cudaEventQuery(event);
    EXPECT_TRUE(answer == cudaSuccess || answer == cudaErrorNotReady) << answer;
    return answer == cudaSuccess;
  }
  /// Asks again and again, at most for ten seconds.
  static bool happens_when_polled(cudaEvent_t event) {
    const auto end = Clock::now() + 10s;
    while (!has_happened(event) && Clock::now() < end) std::this_thread::sleep_for(1ms);
    return has_happened(event);
  }

  static constexpr size_t kBytes = 4096;
  cudaStream_t first_ = nullptr;
  cudaStream_t second_ = nullptr;
  void* memory_ = nullptr;
  std::vector<cudaEvent_t> events_;
};

TEST_F(OrderedEvents, HappenWhenTheHostWaitsForTheirStream) {
  const cudaEvent_t event = record(first_);
  EXPECT_FALSE(has_happened(event));
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_FALSE(has_happened(event));
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_TRUE(has_happened(event));
}

TEST_F(OrderedEvents, ThatWereNeverRecordedHaveHappened) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_TRUE(has_happened(event));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(OrderedEvents, HappenInTheOrderOfTheirStream) {
  const cudaEvent_t before = record(first_);
  const cudaEvent_t waited_for = record(first_);
  const cudaEvent_t after = record(first_);
  EXPECT_EQ(cudaEventSynchronize(waited_for), cudaSuccess);
  EXPECT_TRUE(has_happened(before));
  EXPECT_FALSE(has_happened(after));
}

TEST_F(OrderedEvents, HappenBeforeWhatWaitedForThem) {
  const cudaEvent_t of_first = record(first_);
  const cudaEvent_t early = record(second_);
  EXPECT_EQ(cudaStreamWaitEvent(second_, of_first, 0), cudaSuccess);
  const cudaEvent_t late = record(second_);
  EXPECT_EQ(cudaEventSynchronize(early), cudaSuccess);
  EXPECT_FALSE(has_happened(of_first)) << "the second stream had not waited yet";
  EXPECT_EQ(cudaEventSynchronize(late), cudaSuccess);
  EXPECT_TRUE(has_happened(of_first));
}

TEST_F(OrderedEvents, AreThoseOfTheirLastRecord) {
  const cudaEvent_t event = record(first_);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, second_), cudaSuccess);
  EXPECT_FALSE(has_happened(event));
}

TEST_F(OrderedEvents, OfOneDeviceHappenWhenTheHostWaitsForIt) {
  const cudaEvent_t first = record(first_);
  const cudaEvent_t second = record(second_);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const cudaEvent_t elsewhere = record(nullptr);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(has_happened(first));
  EXPECT_TRUE(has_happened(second));
  EXPECT_FALSE(has_happened(elsewhere));
}

TEST_F(OrderedEvents, HappenWhenMemoryIsGivenBack) {
  const cudaEvent_t event = record(first_);
  void* other = nullptr;
  ASSERT_EQ(cudaMalloc(&other, 1), cudaSuccess);
  EXPECT_FALSE(has_happened(event));
  EXPECT_EQ(cudaFree(other), cudaSuccess);
  EXPECT_TRUE(has_happened(event));
}

TEST_F(OrderedEvents, OfTheDefaultStreamHappenBeforeABlockingCopyToTheHost) {
  const cudaEvent_t of_default = record(nullptr);
  const cudaEvent_t aside = record(first_);
  char host = 0;
  EXPECT_EQ(cudaMemcpy(&host, memory_, 1, cudaMemcpyDefault), cudaSuccess);
  EXPECT_TRUE(has_happened(of_default));
  EXPECT_FALSE(has_happened(aside));
}

TEST_F(OrderedEvents, DoNotHappenWhileACopyStaysOnTheDevice) {
  const cudaEvent_t event = record(nullptr);
  char* const bytes = static_cast<char*>(memory_);
  EXPECT_EQ(cudaMemcpy(bytes, bytes + 16, 16, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_FALSE(has_happened(event));
}

TEST_F(OrderedEvents, HappenBeforeACopyIntoMemoryThatIsNotPageLocked) {
  const cudaEvent_t event = record(first_);
  void* locked = nullptr;
  ASSERT_EQ(cudaMallocHost(&locked, 1), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(locked, memory_, 1, cudaMemcpyDeviceToHost, first_), cudaSuccess);
  EXPECT_FALSE(has_happened(event));
  char pageable = 0;
  EXPECT_EQ(cudaMemcpyAsync(&pageable, memory_, 1, cudaMemcpyDeviceToHost, first_), cudaSuccess);
  EXPECT_TRUE(has_happened(event));
  EXPECT_EQ(cudaFreeHost(locked), cudaSuccess);
}

TEST_F(OrderedEvents, OfABlockingStreamAndOfTheDefaultStreamAreOrdered) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  const cudaEvent_t of_blocking = record(blocking);
  const cudaEvent_t of_other = record(first_);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_TRUE(has_happened(of_blocking));
  EXPECT_FALSE(has_happened(of_other));
  const cudaEvent_t of_default = record(nullptr);
  EXPECT_FALSE(has_happened(of_default));
  EXPECT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
  EXPECT_TRUE(has_happened(of_default));
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(OrderedEvents, HaveNoTimeBeforeTheyHappen) {
  const cudaEvent_t start = record(first_, cudaEventDefault);
  const cudaEvent_t end = record(first_, cudaEventDefault);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GT(milliseconds, 0);
}

TEST_F(OrderedEvents, StreamIsDoneWhenTheHostHasWaitedForIt) {
  EXPECT_EQ(cudaStreamQuery(first_), cudaSuccess);
  work(first_);
  EXPECT_EQ(cudaStreamQuery(first_), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(second_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(first_), cudaSuccess);
}

TEST_F(OrderedEvents, PollingCountsAsWaiting) {
  const cudaEvent_t before = record(first_);
  const cudaEvent_t polled = record(first_);
  const cudaEvent_t after = record(first_);
  EXPECT_TRUE(happens_when_polled(polled));
  EXPECT_TRUE(has_happened(before));
  work(second_);  // the poll has ended
  EXPECT_FALSE(has_happened(after));
}

TEST_F(OrderedEvents, AskingBetweenPiecesOfWorkIsNoPolling) {
  const cudaEvent_t event = record(first_);
  for (int i = 0; i < 60; ++i) {  // 0.6 s and 600 questions, as the caching allocator asks
    for (int question = 0; question < 10; ++question) EXPECT_FALSE(has_happened(event));
    work(second_);
    std::this_thread::sleep_for(10ms);
  }
}

TEST_F(OrderedEvents, AThreadThatOnlyWatchesIsAnsweredAndChangesNothing) {
  work(first_);
  const cudaEvent_t event = record(first_);
  bool answered = false;
  std::thread([&] { answered = happens_when_polled(event); }).join();
  EXPECT_TRUE(answered);
  EXPECT_FALSE(has_happened(event));
}

}  // namespace
