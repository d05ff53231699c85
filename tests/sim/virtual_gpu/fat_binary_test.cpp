#include "sim/virtual_gpu/cudart/fat_binary.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace virtual_gpu {
namespace {

struct Image {
  uint16_t kind;  // 1 PTX, 2 cubin
  uint32_t architecture;
  uint64_t flags = 0;
};

/// Bytes as nvcc embeds them, with images of 8 bytes each.
class Embedded {
 public:
  explicit Embedded(const std::vector<Image>& images) {
    append(uint32_t{0xba55ed50});
    append(uint16_t{1});
    append(uint16_t{16});
    append(uint64_t{images.size() * (64 + 8)});
    for (const Image& image : images) {
      const size_t start = bytes_.size();
      append(image.kind);
      append(uint16_t{0x101});
      append(uint32_t{64});
      append(uint64_t{8});
      bytes_.resize(start + 28);
      append(image.architecture);
      bytes_.resize(start + 40);
      append(image.flags);
      bytes_.resize(start + 64 + 8);
    }
    wrapper_.container = bytes_.data();
  }

  const void* wrapper() const { return &wrapper_; }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename Number>
  void append(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  std::string bytes_;
  struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 1;
    const char* container = nullptr;
    void* unused = nullptr;
  } wrapper_;
};

/// "binary/ptx" of what a device would run.
std::string version_on(int major, int minor, const std::vector<Image>& images) {
  const Embedded embedded(images);
  const FatBinary binary(embedded.wrapper());
  const auto version = binary.version_for(*find_capability(major, minor));
  if (!version) return "none";
  return std::to_string(version->binary) + "/" + std::to_string(version->ptx);
}

const std::vector<Image> kTorch = {{2, 75}, {2, 80}, {2, 86}, {2, 90}, {2, 100}, {2, 120}};

TEST(FatBinary, RunsTheNewestCubinOfTheSameMajorVersion) {
  EXPECT_EQ(version_on(9, 0, kTorch), "90/90");
  EXPECT_EQ(version_on(8, 9, kTorch), "86/86");
  EXPECT_EQ(version_on(10, 3, kTorch), "100/100");
}

TEST(FatBinary, HasNothingForADeviceOlderThanItsCode) {
  EXPECT_EQ(version_on(7, 0, kTorch), "none");
  EXPECT_EQ(version_on(9, 0, {{2, 80}, {2, 100}}), "none");
}

TEST(FatBinary, CompilesPtxWhereNoCubinFits) {
  EXPECT_EQ(version_on(12, 0, {{2, 80}, {1, 80}, {1, 90}}), "120/90");
  EXPECT_EQ(version_on(8, 6, {{2, 80}, {1, 80}}), "80/80");
}

TEST(FatBinary, KeepsArchitectureSpecificCodeToItsArchitecture) {
  EXPECT_EQ(version_on(10, 0, {{2, 100, 0x100000}}), "100/100");
  EXPECT_EQ(version_on(10, 3, {{2, 100, 0x100000}}), "none");
}

TEST(FatBinary, EndsAtAnImageThatSaysItHasNoLength) {
  std::string bytes = Embedded({{2, 80}, {2, 90}}).bytes();
  std::memset(bytes.data() + 16 + 72 + 4, 0, 12);  // the second one's header_bytes and image_bytes
  EXPECT_EQ(images_in(bytes).size(), 1u);
}

TEST(FatBinary, ThatIsCutOffHasWhatIsWhole) {
  const std::string bytes = Embedded({{2, 80}, {2, 90}}).bytes();
  EXPECT_EQ(images_in(bytes).size(), 2u);
  EXPECT_EQ(images_in({bytes.data(), bytes.size() - 72}).size(), 1u);
  EXPECT_EQ(images_in({bytes.data(), 15}).size(), 0u);
}

TEST(FatBinary, OfAnotherFormatHasNothing) {
  const uint32_t other[4] = {};
  EXPECT_FALSE(FatBinary(other).version_for(*find_capability(9, 0)));
}

}  // namespace
}  // namespace virtual_gpu
