// CUDA graphs: what a stream is given while it is captured happens at every launch of the graph.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "sim/virtual_gpu/control.h"

namespace {

void kernel() {}

class Graph : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaMalloc(&memory_, 4096), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
    cudaEventDestroy(event_);
    cudaStreamDestroy(other_);
    cudaStreamDestroy(stream_);
    cudaFree(memory_);
  }

  static void launch(cudaStream_t stream) {
    const auto* const function = reinterpret_cast<const void*>(&kernel);
    EXPECT_EQ(cudaLaunchKernel(function, dim3(2), dim3(32), nullptr, 0, stream), cudaSuccess);
  }
  static cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    cudaStreamIsCapturing(stream, &status);
    return status;
  }
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  }
  /// Ends the capture and launches its graph.
  void launch_captured(int times) { launch_captured_in(other_, times); }
  void launch_captured_in(cudaStream_t stream, int times) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (int i = 0; i < times; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  }

  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

TEST_F(Graph, CountsWhatWasCapturedAtEveryLaunch) {
  const uint64_t before = onerank_virtual_gpu_kernel_launches();
  begin();
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusActive);
  EXPECT_EQ(status_of(other_), cudaStreamCaptureStatusNone);
  launch(stream_);
  launch(stream_);
  EXPECT_EQ(onerank_virtual_gpu_kernel_launches(), before);
  launch_captured(3);
  EXPECT_EQ(status_of(stream_), cudaStreamCaptureStatusNone);
  EXPECT_EQ(onerank_virtual_gpu_kernel_launches(), before + 6);
}

TEST_F(Graph, TellsItsWorkInTheStreamOfTheLaunch) {
  static std::vector<onerank_virtual_gpu_event> told;
  told.clear();
  onerank_virtual_gpu_set_event_sink(
      [](const onerank_virtual_gpu_event* event, void*) { told.push_back(*event); }, nullptr);
  begin();
  cudaMemsetAsync(memory_, 0, 64, stream_);
  launch(stream_);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].kind, ONERANK_VIRTUAL_GPU_CAPTURE);
  EXPECT_EQ(told[2].kind, ONERANK_VIRTUAL_GPU_CAPTURED_WORK);
  EXPECT_EQ(told[2].threads, 64u);
  const uint64_t graph = told[0].graph;
  const uint64_t kernel = told[2].captured;
  told.clear();
  launch_captured(1);
  ASSERT_EQ(told.size(), 5u);
  EXPECT_EQ(told[0].kind, ONERANK_VIRTUAL_GPU_CAPTURED);
  EXPECT_EQ(told[4].kind, ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED);
  for (const size_t event : {0, 1, 4}) EXPECT_EQ(told[event].graph, graph);
  told.erase(told.begin());
  EXPECT_EQ(told[0].kind, ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH);
  EXPECT_EQ(told[1].kind, ONERANK_VIRTUAL_GPU_FILL);
  EXPECT_EQ(told[1].bytes, 64u);
  EXPECT_EQ(told[2].kind, ONERANK_VIRTUAL_GPU_KERNEL);
  EXPECT_EQ(told[2].threads, 64u);
  EXPECT_EQ(told[2].captured, kernel);
  EXPECT_EQ(told[2].stream, onerank_virtual_gpu_stream_number(other_));
}

TEST_F(Graph, CapturesStreamsThatWaitForTheCapturedOne) {
  const uint64_t before = onerank_virtual_gpu_kernel_launches();
  begin();
  cudaEventRecord(event_, stream_);
  cudaStreamWaitEvent(other_, event_, 0);
  EXPECT_EQ(status_of(other_), cudaStreamCaptureStatusActive);
  launch(other_);
  cudaEventRecord(event_, other_);
  cudaStreamWaitEvent(stream_, event_, 0);
  EXPECT_EQ(onerank_virtual_gpu_kernel_launches(), before);
  launch_captured(1);
  EXPECT_EQ(onerank_virtual_gpu_kernel_launches(), before + 1);
}

// What is captured from a stream that joins is told in it, and the points by which it hangs
// together are records of their own at each launch.
TEST_F(Graph, TellsTheWorkOfOtherStreamsInThese) {
  static std::vector<onerank_virtual_gpu_event> told;
  begin();
  cudaEventRecord(event_, stream_);
  cudaStreamWaitEvent(other_, event_, 0);
  launch(other_);
  const uint64_t mark = onerank_virtual_gpu_capture_mark(other_);
  EXPECT_NE(mark, 0u);
  cudaEventRecord(event_, other_);
  cudaStreamWaitEvent(stream_, event_, 0);
  cudaStream_t launching = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&launching, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(onerank_virtual_gpu_capture_mark(launching), 0u) << "it is not captured";
  const int origin = onerank_virtual_gpu_stream_number(launching);
  const int branch = onerank_virtual_gpu_stream_number(other_);
  told.clear();
  onerank_virtual_gpu_set_event_sink(
      [](const onerank_virtual_gpu_event* event, void*) { told.push_back(*event); }, nullptr);
  launch_captured_in(launching, 2);
  const auto expect_launch = [&](const onerank_virtual_gpu_event* event) {
    EXPECT_EQ(event[0].kind, ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH);
    EXPECT_EQ(event[1].kind, ONERANK_VIRTUAL_GPU_RECORD);
    EXPECT_EQ(event[1].stream, origin);
    EXPECT_EQ(event[2].kind, ONERANK_VIRTUAL_GPU_STREAM_WAIT);
    EXPECT_EQ(event[2].stream, branch);
    EXPECT_EQ(event[2].record, event[1].record);
    EXPECT_EQ(event[3].kind, ONERANK_VIRTUAL_GPU_KERNEL);
    EXPECT_EQ(event[3].stream, branch);
    EXPECT_EQ(event[4].kind, ONERANK_VIRTUAL_GPU_MARK);
    EXPECT_EQ(event[4].captured, mark);
    EXPECT_EQ(event[5].kind, ONERANK_VIRTUAL_GPU_RECORD);
    EXPECT_EQ(event[6].kind, ONERANK_VIRTUAL_GPU_STREAM_WAIT);
    EXPECT_EQ(event[6].stream, origin);
    EXPECT_EQ(event[6].record, event[5].record);
    EXPECT_EQ(event[7].kind, ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED);
  };
  constexpr size_t kOfLaunch = 8;
  ASSERT_EQ(told.size(), 1 + 2 * kOfLaunch);
  expect_launch(&told[1]);
  expect_launch(&told[1 + kOfLaunch]);
  EXPECT_EQ(told[1 + kOfLaunch + 1].record, told[6].record + 1);
  cudaStreamDestroy(launching);
}

// An event is no node of a graph.
TEST_F(Graph, HasTheWorksAsNodes) {
  begin();
  cudaEventRecord(event_, stream_);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  size_t nodes = 1;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 0u);
  cudaGraphDestroy(graph);
}

TEST_F(Graph, DoesNotLetTheHostWaitForWhatIsCaptured) {
  begin();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  cudaGetLastError();
}

TEST_F(Graph, IsCapturedOneAtATime) {
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(other_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  cudaGetLastError();
  launch_captured(0);
}

TEST_F(Graph, MakesTheValuesUnknownThatItsOperatorsWrote) {
  const int64_t old = 7;
  onerank_virtual_gpu_remember_values(4096);
  onerank_virtual_gpu_send(memory_, sizeof old, &old);
  begin();
  onerank_virtual_gpu_forget(memory_, sizeof old, onerank_virtual_gpu_clock());
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  onerank_virtual_gpu_send(memory_, sizeof old, &old);
  EXPECT_NE(onerank_virtual_gpu_peek(memory_, sizeof old, nullptr), 0);
  ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(onerank_virtual_gpu_peek(memory_, sizeof old, nullptr), 0);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  onerank_virtual_gpu_remember_values(0);
}

}  // namespace
