#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

/// What the runtime says of the GPU of main.cpp.
namespace {

TEST(Device, HasTheNameMemoryAndCapabilityOfTheVariable) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Test GPU");
  EXPECT_EQ(properties.totalGlobalMem, 1073741824u);
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.minor, 0);
  EXPECT_EQ(properties.multiProcessorCount, 132);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 232448u);
}

TEST(Device, AttributesAgreeWithProperties) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  const auto attribute = [](cudaDeviceAttr number) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, number, 1), cudaSuccess);
    return value;
  };
  EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), properties.multiProcessorCount);
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerMultiProcessor),
            properties.maxThreadsPerMultiProcessor);
  EXPECT_EQ(attribute(cudaDevAttrMaxGridDimY), properties.maxGridSize[1]);
  EXPECT_EQ(attribute(cudaDevAttrL2CacheSize), 52428800);
  EXPECT_EQ(properties.l2CacheSize, 52428800);
  EXPECT_EQ(attribute(cudaDevAttrPciBusId), properties.pciBusID);
}

TEST(Device, RefusesAnAttributeItDoesNotKnowByNumber) {
  int value = -1;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxTexture1DWidth, 0), cudaErrorNotSupported);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("cudaDeviceGetAttribute(attribute 21)"), std::string::npos) << text;
  EXPECT_EQ(value, -1);
  cudaGetLastError();
}

TEST(Device, IsSelectedForEachThread) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  std::thread([] {
    int ordinal = -1;
    EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
    EXPECT_EQ(ordinal, 0);
  }).join();
  int ordinal = -1;
  EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
  EXPECT_EQ(ordinal, 1);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(Device, ThatDoesNotExistIsAnError) {
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the error is told once";
}

TEST(Device, IsFoundByItsBusId) {
  char text[32];
  ASSERT_EQ(cudaDeviceGetPCIBusId(text, sizeof text, 1), cudaSuccess);
  int ordinal = -1;
  EXPECT_EQ(cudaDeviceGetByPCIBusId(&ordinal, text), cudaSuccess);
  EXPECT_EQ(ordinal, 1);
}

TEST(Device, ReachesItsPeerOverNvlink) {
  int can = -1, atomics = -1;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 1, 1), cudaSuccess);
  EXPECT_EQ(can, 0) << "a device is not its own peer";
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, 1, 0),
            cudaSuccess);
  EXPECT_EQ(atomics, 1);
  cudaGetLastError();
}

TEST(Device, AllowsAccessToItsPeerOnce) {
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST(Device, ErrorsHaveTheirNames) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

/// Ends the process with what cudaGetDeviceCount returned when the variable is `text`.
[[noreturn]] void count_devices_of(const char* text) {
  text != nullptr ? setenv("ONERANK_VIRTUAL_GPU", text, 1) : unsetenv("ONERANK_VIRTUAL_GPU");
  int count = -1;
  const cudaError_t error = cudaGetDeviceCount(&count);
  exit(count == 0 ? error : 99);
}

TEST(DeviceDeathTest, WithoutTheVariableThereIsNoneAndTheReasonIsTold) {
  EXPECT_EXIT(count_devices_of(nullptr),
              testing::ExitedWithCode(cudaErrorInitializationError),
              "ONERANK_VIRTUAL_GPU is not set");
}

TEST(DeviceDeathTest, OfAWrongVariableThereIsNoneAndTheReasonIsTold) {
  EXPECT_EXIT(count_devices_of("name=x;capability=9.0"),
              testing::ExitedWithCode(cudaErrorInitializationError),
              "the key 'multiprocessors' is missing");
}

TEST(DeviceDeathTest, OfAnUnknownCapabilityThereIsNoneAndTheReasonIsTold) {
  EXPECT_EXIT(
      count_devices_of(
          "name=x;capability=6.1;multiprocessors=1;memory_bytes=1;l2_bytes=1;outside_bytes=0;"
          "devices=1;nvlinks=0;board_watts=0;events=immediate"),
      testing::ExitedWithCode(cudaErrorInitializationError),
      "nothing is known of compute capability 6.1");
}

/// Ends the process with 0 if a device without NVLink cannot reach the other.
[[noreturn]] void look_for_peers_without_nvlink() {
  setenv("ONERANK_VIRTUAL_GPU",
         "name=x;capability=9.0;multiprocessors=1;memory_bytes=1;l2_bytes=1;outside_bytes=0;"
         "devices=2;nvlinks=0;board_watts=0;events=immediate",
         1);
  int can = -1;
  const cudaError_t error = cudaDeviceCanAccessPeer(&can, 0, 1);
  const bool is_refused = cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessUnsupported;
  exit(error == cudaSuccess && can == 0 && is_refused ? 0 : 1);
}

TEST(DeviceDeathTest, WithoutNvlinkHasNoPeers) {
  EXPECT_EXIT(look_for_peers_without_nvlink(), testing::ExitedWithCode(0), "");
}

}  // namespace
