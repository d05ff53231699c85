#include <gtest/gtest.h>

extern "C" {
int cudnnCreate(void** handle);
int cudnnSetStream(void* handle, void* stream);
int cudnnBackendExecute(void*, void*, void*);
int cudnnPoolingForward();
size_t cudnnGetVersion();
int cudaGraphLaunch(void*, void*);
int cuStreamBeginCapture_v2(void*, int);
int cublasSgelsBatched();
}

/// The functions that generate_stubs.py wrote.
namespace {

template <typename Call>
std::string stderr_of(const Call& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

TEST(Refusal, NamesTheFunctionAndReturnsTheErrorOfItsLibrary) {
  EXPECT_EQ(stderr_of([] { EXPECT_EQ(cudnnBackendExecute(nullptr, nullptr, nullptr), 3000); }),
            "onerank: the virtual GPU has no answer for cudnnBackendExecute(): it returns "
            "CUDNN_STATUS_NOT_SUPPORTED (3000)\n");
  EXPECT_EQ(cudaGraphLaunch(nullptr, nullptr), 801);
  EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, 0), 801);
  EXPECT_EQ(cublasSgelsBatched(), 15);
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
