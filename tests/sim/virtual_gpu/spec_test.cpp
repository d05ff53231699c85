#include "sim/virtual_gpu/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace virtual_gpu {
namespace {

const VirtualGpuSpec kH100{.name = "NVIDIA H100 80GB HBM3",
                           .capability_major = 9,
                           .capability_minor = 0,
                           .multiprocessors = 132,
                           .memory_bytes = 85029158912,
                           .l2_bytes = 52428800,
                           .device_count = 1,
                           .nvlinks = 18,
                           .board_watts = 700};
constexpr const char* kH100Text =
    "name=NVIDIA H100 80GB HBM3;capability=9.0;multiprocessors=132;memory_bytes=85029158912;"
    "l2_bytes=52428800;outside_bytes=0;devices=1;nvlinks=18;board_watts=700;events=immediate";

std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(VirtualGpuSpec, WritesTheDocumentedText) { EXPECT_EQ(to_environment(kH100), kH100Text); }

TEST(VirtualGpuSpec, ReadsTheDocumentedText) { EXPECT_EQ(parse(kH100Text), kH100); }

TEST(VirtualGpuSpec, ReadsKeysInAnyOrder) {
  EXPECT_EQ(
      parse(
          "devices=1;events=immediate;memory_bytes=85029158912;multiprocessors=132;capability=9.0;"
          "outside_bytes=0;board_watts=700;nvlinks=18;l2_bytes=52428800;name=NVIDIA H100 80GB "
          "HBM3"),
      kH100);
}

TEST(VirtualGpuSpec, ReadsTwoDigitCapabilities) {
  const auto spec = parse(
      "name=B300;capability=10.3;multiprocessors=148;memory_bytes=1;l2_bytes=1;"
      "outside_bytes=0;devices=8;nvlinks=18;board_watts=0;events=immediate");
  EXPECT_EQ(spec.capability_major, 10);
  EXPECT_EQ(spec.capability_minor, 3);
  EXPECT_EQ(spec.device_count, 8);
}

TEST(VirtualGpuSpec, TellsWhenAnEventHasHappened) {
  VirtualGpuSpec spec = kH100;
  spec.ordered_events = true;
  EXPECT_THAT(to_environment(spec), testing::EndsWith(";events=ordered"));
  EXPECT_EQ(parse(to_environment(spec)), spec);
  spec.ordered_events = false;
  EXPECT_EQ(parse(to_environment(spec)), spec);
}

TEST(VirtualGpuSpec, RejectsMoreNvlinksThanADeviceCanHave) {
  VirtualGpuSpec spec = kH100;
  spec.nvlinks = 37;
  EXPECT_THROW(to_environment(spec), std::invalid_argument);
}

TEST(VirtualGpuSpec, RejectsAModeOfEventsThatIsNone) {
  const std::string text =
      "name=x;capability=9.0;multiprocessors=1;memory_bytes=1;l2_bytes=1;outside_bytes=0;"
      "devices=1;nvlinks=0;board_watts=0;events=late";
  EXPECT_NE(message_of(text).find("'late'"), std::string::npos);
}

TEST(VirtualGpuSpec, RejectsAMissingKeyByName) {
  EXPECT_NE(message_of("name=x;capability=9.0;memory_bytes=1;devices=1;events=immediate")
                .find("'multiprocessors'"),
            std::string::npos);
}

TEST(VirtualGpuSpec, RejectsAnUnknownKeyByName) {
  EXPECT_NE(message_of(std::string(kH100Text) + ";memory=80").find("'memory'"), std::string::npos);
}

TEST(VirtualGpuSpec, RejectsAKeyThatStandsTwice) {
  EXPECT_NE(message_of(std::string(kH100Text) + ";devices=2").find("twice"), std::string::npos);
}

TEST(VirtualGpuSpec, RejectsNumbersThatAreNone) {
  for (const char* memory : {"80GB", "-1", "0", "", "1e9", "99999999999999999999"}) {
    const std::string text = std::string("name=x;capability=9.0;multiprocessors=1;devices=1;") +
                             "memory_bytes=" + memory;
    EXPECT_THROW(parse(text), std::invalid_argument) << memory;
  }
}

TEST(VirtualGpuSpec, RejectsMoreOutsideAllocatorsThanThereIs) {
  const auto with = [](int64_t bytes) {
    return "name=x;capability=9.0;multiprocessors=1;memory_bytes=80;l2_bytes=1;devices=1;"
           "nvlinks=0;board_watts=0;events=immediate;outside_bytes=" +
           std::to_string(bytes);
  };
  EXPECT_EQ(parse(with(80)).outside_bytes, 80);
  EXPECT_NE(message_of(with(81)).find("outside_bytes=81"), std::string::npos);
}

TEST(VirtualGpuSpec, RejectsACapabilityWithoutADot) {
  EXPECT_THROW(parse("name=x;capability=90;multiprocessors=1;memory_bytes=1;devices=1"),
               std::invalid_argument);
}

TEST(VirtualGpuSpec, RejectsTheEmptyText) { EXPECT_THROW(parse(""), std::invalid_argument); }

TEST(VirtualGpuSpec, DoesNotWriteANameThatItCouldNotRead) {
  VirtualGpuSpec spec = kH100;
  spec.name = "H100;devices=8";
  EXPECT_THROW(to_environment(spec), std::invalid_argument);
}

}  // namespace
}  // namespace virtual_gpu
