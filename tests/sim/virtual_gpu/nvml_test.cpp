#include <gtest/gtest.h>

/// What NVIDIA's management library says of the GPU of main.cpp: numbers are those of nvml.h.
extern "C" {
int nvmlDeviceGetHandleByIndex_v2(unsigned, void**);
int nvmlDeviceGetNvLinkState(void*, unsigned, int*);
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*);
int nvmlDeviceGetP2PStatus(void*, void*, int, int*);
int nvmlDeviceGetTopologyCommonAncestor(void*, void*, int*);
int nvmlDeviceGetMigMode(void*, unsigned*, unsigned*);
int nvmlDeviceGetEccMode(void*, int*, int*);
int nvmlDeviceGetPowerManagementLimit(void*, unsigned*);
int nvmlDeviceGetClockInfo(void*, int, unsigned*);
}

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3;

void* handle_of(unsigned index) {
  void* handle = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &handle), kSuccess);
  return handle;
}

TEST(Nvml, HasTheNvlinksOfTheVariable) {
  int is_active = -1, type = -1;
  EXPECT_EQ(nvmlDeviceGetNvLinkState(handle_of(1), 17, &is_active), kSuccess);
  EXPECT_EQ(is_active, 1);
  EXPECT_EQ(nvmlDeviceGetNvLinkRemoteDeviceType(handle_of(1), 17, &type), kSuccess);
  EXPECT_EQ(type, 2) << "a switch";
  EXPECT_EQ(nvmlDeviceGetNvLinkState(handle_of(1), 18, &is_active), kNotSupported);
}

TEST(Nvml, TellsHowTwoDevicesAreJoined) {
  int status = -1, level = -1;
  constexpr int kNvlink = 2;
  EXPECT_EQ(nvmlDeviceGetP2PStatus(handle_of(0), handle_of(1), kNvlink, &status), kSuccess);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(nvmlDeviceGetP2PStatus(handle_of(0), handle_of(1), 5, &status), kInvalidArgument);
  EXPECT_EQ(nvmlDeviceGetTopologyCommonAncestor(handle_of(0), handle_of(1), &level), kSuccess);
  EXPECT_EQ(level, 50) << "two processors, each with half of the devices";
  EXPECT_EQ(nvmlDeviceGetTopologyCommonAncestor(handle_of(1), handle_of(1), &level), kSuccess);
  EXPECT_EQ(level, 0);
}

TEST(Nvml, TellsHowABoardIsSet) {
  unsigned current = 9, pending = 9, milliwatts = 0, megahertz = 0;
  int ecc = -1, pending_ecc = -1;
  EXPECT_EQ(nvmlDeviceGetMigMode(handle_of(0), &current, &pending), kSuccess);
  EXPECT_EQ(current + pending, 0u);
  EXPECT_EQ(nvmlDeviceGetEccMode(handle_of(0), &ecc, &pending_ecc), kSuccess);
  EXPECT_EQ(ecc + pending_ecc, 2);
  EXPECT_EQ(nvmlDeviceGetPowerManagementLimit(handle_of(0), &milliwatts), kSuccess);
  EXPECT_EQ(milliwatts, 700'000u);
  EXPECT_EQ(nvmlDeviceGetClockInfo(handle_of(0), 1, &megahertz), kSuccess);
  EXPECT_EQ(megahertz, 1980u) << "of an H100's multiprocessors";
  EXPECT_EQ(nvmlDeviceGetClockInfo(handle_of(0), 3, &megahertz), kNotSupported);
}

}  // namespace
