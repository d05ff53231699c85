#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

extern "C" {
int cudnnCreate(void** handle);
int cudnnSetStream(void* handle, void* stream);
int cudnnBackendExecute(void*, void*, void*);
int cudnnPoolingForward();
size_t cudnnGetVersion();
int cudnnRNNForward();
int cudaGraphLaunch(void*, void*);
int cudaMallocManaged(void**, size_t, unsigned);
int cuStreamBeginCapture_v2(void*, int);
int cublasSgelsBatched();
}

/// The functions that generate_stubs.py wrote.
namespace {

using testing::HasSubstr;

template <typename Call>
std::string stderr_of(const Call& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

TEST(Refusal, NamesTheFunctionAndReturnsTheErrorOfItsLibrary) {
  EXPECT_EQ(stderr_of([] { EXPECT_EQ(cublasSgelsBatched(), 15); }),
            "onerank: the virtual GPU has no answer for cublasSgelsBatched(): it returns "
            "CUBLAS_STATUS_NOT_SUPPORTED (15)\n");
  EXPECT_EQ(cudaGraphLaunch(nullptr, nullptr), 801);
  EXPECT_EQ(cudnnBackendExecute(nullptr, nullptr, nullptr), 3000);
}

TEST(Refusal, TellsTheWayOutWhereThereIsOne) {
  EXPECT_THAT(
      stderr_of([] { EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, 0), 801); }),
      HasSubstr("(801)\n  help: CUDA graphs are not there: run without torch.cuda.graph, and "
                "torch.compile without mode=\"reduce-overhead\"\n"));
  EXPECT_THAT(stderr_of([] { EXPECT_EQ(cudaMallocManaged(nullptr, 0, 0), 801); }),
              HasSubstr("help: managed memory is not there"));
  EXPECT_THAT(stderr_of([] { EXPECT_EQ(cudnnRNNForward(), 3000); }),
              HasSubstr("help: cuDNN computes nothing here"));
}

TEST(Refusal, IsToldOnceForEachFunction) {
  EXPECT_NE(stderr_of([] { EXPECT_EQ(cudnnPoolingForward(), 3000); }), "");
  EXPECT_EQ(stderr_of([] { EXPECT_EQ(cudnnPoolingForward(), 3000); }), "");
}

TEST(Refusal, LeavesHandlesAlone) {
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_EQ(cudnnCreate(&first), 0);
  EXPECT_EQ(cudnnCreate(&second), 0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(cudnnSetStream(first, nullptr), 0);
}

TEST(Refusal, LeavesVersionsAlone) { EXPECT_EQ(cudnnGetVersion(), 91900u); }

}  // namespace
