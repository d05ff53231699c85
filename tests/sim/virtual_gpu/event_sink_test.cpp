#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/virtual_gpu/control.h"

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const char* name_of(onerank_virtual_gpu_event_kind kind) {
  switch (kind) {
    case ONERANK_VIRTUAL_GPU_KERNEL:
      return "kernel";
    case ONERANK_VIRTUAL_GPU_PRODUCT:
      return "product";
    case ONERANK_VIRTUAL_GPU_COPY:
      return "copy";
    case ONERANK_VIRTUAL_GPU_FILL:
      return "fill";
    case ONERANK_VIRTUAL_GPU_RECORD:
      return "record";
    case ONERANK_VIRTUAL_GPU_STREAM_WAIT:
      return "stream wait";
    case ONERANK_VIRTUAL_GPU_HOST_WAIT:
      return "host wait";
    case ONERANK_VIRTUAL_GPU_ATTENTION:
      return "attention";
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH:
      return "graph launch";
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED:
      return "graph launched";
    case ONERANK_VIRTUAL_GPU_CAPTURE:
      return "capture";
    case ONERANK_VIRTUAL_GPU_CAPTURED:
      return "captured";
    case ONERANK_VIRTUAL_GPU_CAPTURED_WORK:
      return "captured work";
    case ONERANK_VIRTUAL_GPU_MARK:
      return "mark";
    case ONERANK_VIRTUAL_GPU_MODULE_LOAD:
      return "module load";
  }
  return "?";
}

class EventSink : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaMalloc(&memory_, 4096), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
    onerank_virtual_gpu_set_event_sink(
        [](const onerank_virtual_gpu_event* event, void* self) {
          static_cast<EventSink*>(self)->add(*event);
        },
        this);
  }
  void TearDown() override {
    onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
    cudaEventDestroy(event_);
    cudaStreamDestroy(stream_);
    cudaFree(memory_);
  }

  /// "copy on stream, 16 bytes". Records are numbered from 1 in each test.
  void add(const onerank_virtual_gpu_event& event) {
    std::string text = name_of(event.kind);
    if (event.stream == onerank_virtual_gpu_stream_number(stream_)) text += " on stream";
    if (event.stream == onerank_virtual_gpu_stream_number(nullptr)) text += " on default stream";
    if (event.bytes > 0) text += ", " + std::to_string(event.bytes) + " bytes";
    if (event.is_pageable != 0) text += ", pageable";
    if (event.record > 0) {
      if (std::find(records_.begin(), records_.end(), event.record) == records_.end()) {
        records_.push_back(event.record);
      }
      const auto place = std::find(records_.begin(), records_.end(), event.record);
      text += ", record " + std::to_string(place - records_.begin() + 1);
    }
    told_.push_back(text);
  }

  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::vector<uint64_t> records_;
  std::vector<std::string> told_;
};

TEST_F(EventSink, GetsWorkAndWaitsInTheOrderOfTheCalls) {
  cudaMemsetAsync(memory_, 0, 32, nullptr);
  cudaEventRecord(event_, nullptr);
  cudaStreamWaitEvent(stream_, event_, 0);
  cudaMemcpyAsync(memory_, memory_, 16, cudaMemcpyDeviceToDevice, stream_);
  cudaStreamSynchronize(stream_);
  cudaDeviceSynchronize();
  EXPECT_THAT(told_,
              ElementsAre("fill on default stream, 32 bytes",
                          "record on default stream, record 1",
                          "stream wait on stream, record 1",
                          "copy on stream, 16 bytes",
                          "host wait on stream",
                          "host wait"));
}

TEST_F(EventSink, TellsWhichRecordOfAnEventIsWaitedFor) {
  cudaEventRecord(event_, stream_);
  cudaEventRecord(event_, stream_);
  cudaEventSynchronize(event_);
  EXPECT_THAT(
      told_,
      ElementsAre(
          "record on stream, record 1", "record on stream, record 2", "host wait, record 2"));
}

TEST_F(EventSink, GetsNoQueriesAndNoWaitsForWhatWasNeverRecorded) {
  cudaStreamWaitEvent(stream_, event_, 0);
  cudaEventSynchronize(event_);
  cudaEventQuery(event_);
  cudaStreamQuery(stream_);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(EventSink, TellsThatTheHostWaitsForACopyToItsMemory) {
  char value = 0;
  cudaMemcpyAsync(&value, memory_, 1, cudaMemcpyDeviceToHost, stream_);
  EXPECT_THAT(told_, ElementsAre("copy on stream, 1 bytes, pageable", "host wait on stream"));
}

TEST_F(EventSink, TellsWhichCopiesAreOfPageableMemory) {
  char pageable[16] = {};
  void* locked = nullptr;
  ASSERT_EQ(cudaHostAlloc(&locked, 16, cudaHostAllocDefault), cudaSuccess);
  cudaMemcpyAsync(memory_, pageable, 16, cudaMemcpyHostToDevice, stream_);
  cudaMemcpyAsync(memory_, locked, 16, cudaMemcpyHostToDevice, stream_);
  cudaMemcpyAsync(locked, memory_, 16, cudaMemcpyDeviceToHost, stream_);
  ASSERT_EQ(cudaHostRegister(pageable, 16, cudaHostRegisterDefault), cudaSuccess);
  cudaMemcpyAsync(pageable, memory_, 16, cudaMemcpyDeviceToHost, stream_);
  const char* const kLocked = "copy on stream, 16 bytes";
  EXPECT_THAT(told_, ElementsAre("copy on stream, 16 bytes, pageable", kLocked, kLocked, kLocked));
  cudaHostUnregister(pageable);
  cudaFreeHost(locked);
}

}  // namespace
