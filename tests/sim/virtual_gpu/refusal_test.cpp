#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

extern "C" {
int cudnnCreate(void** handle);
int cudnnSetStream(void* handle, void* stream);
int cudnnConvolutionBackwardData();
int cudnnPoolingForward();
size_t cudnnGetVersion();
int cudnnConvolutionForward();
int cudaGraphDebugDotPrint(void*, const char*, unsigned);
int cuMulticastBindAddr(unsigned long long, size_t, unsigned long long, size_t, unsigned long long);
int cuMemAllocManaged(void**, size_t, unsigned);
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
  EXPECT_EQ(cudaGraphDebugDotPrint(nullptr, "", 0), 801);
  EXPECT_EQ(cudnnConvolutionBackwardData(), 3000);
}

TEST(Refusal, TellsTheWayOutWhereThereIsOne) {
  EXPECT_THAT(stderr_of([] { EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, 0), 801); }),
              HasSubstr("(801)\n  help: CUDA graphs are only captured by the runtime "
                        "(cudaStreamBeginCapture)\n"));
  EXPECT_THAT(stderr_of([] { EXPECT_EQ(cuMemAllocManaged(nullptr, 0, 0), 801); }),
              HasSubstr("help: managed memory is only there by the runtime"));
  EXPECT_THAT(stderr_of([] { EXPECT_EQ(cuMulticastBindAddr(0, 0, 0, 0, 0), 801); }),
              HasSubstr("help: memory is bound to a multicast object by its handle alone"));
  EXPECT_THAT(stderr_of([] { EXPECT_EQ(cudnnConvolutionForward(), 3000); }),
              HasSubstr("help: the virtual GPU plays cuDNN's backend"));
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
