#include "sim/virtual_gpu/kernels/fat_binary.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "sim/virtual_gpu/kernels/ptx.h"
#include "tests/sim/virtual_gpu/elf_file.h"
#include "tests/sim/virtual_gpu/embedded_code.h"

namespace virtual_gpu {
namespace {

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

/// The sizes of the parameters of `norm` on a Hopper GPU; "none" if they are not known.
std::string parameters_in(const std::vector<Image>& images) {
  const Embedded embedded(images);
  const FatBinary binary(embedded.wrapper());
  const KernelCode* const code = binary.code_of("norm", *find_capability(9, 0));
  if (code == nullptr || !code->parameter_bytes) return "none";
  std::string text;
  for (const uint32_t bytes : *code->parameter_bytes) text += std::to_string(bytes) + " ";
  return text;
}

constexpr const char* kPtx = R"(.version 8.8
.target sm_90
.visible .entry norm(
	.param .u64 .ptr .align 1 norm_param_0,
	.param .align 8 .b8 norm_param_1[40],
	.param .f32 norm_param_2
)
{
	ret;
}
.entry nothing {
	ret;
}
.entry strange(.param .texref norm_param_0)
)";

TEST(FatBinary, TellsTheParametersOfAKernel) {
  EXPECT_EQ(parameters_in({{2, 90, 0, cubin_with("norm", {8, 2904, 4})}}), "8 2904 4 ");
  EXPECT_EQ(parameters_in({{2, 90, 0, cubin_with("norm", {})}}), "");
  EXPECT_EQ(parameters_in({{1, 80, 0, kPtx}}), "8 40 4 ");
  EXPECT_EQ(parameters_in({{2, 90, 0, cubin_with("another", {8})}}), "none");
  EXPECT_EQ(parameters_in({{2, 100, 0, cubin_with("norm", {8})}}), "none");
}

TEST(FatBinary, TellsTheParametersOfTheCodeThatRuns) {
  EXPECT_EQ(parameters_in({{2, 80, 0, cubin_with("norm", {1})},
                           {2, 90, 0, cubin_with("norm", {2})},
                           {1, 90, 0, kPtx}}),
            "2 ");
}

TEST(Ptx, OfWhichAKernelIsNotUnderstoodHasTheOthers) {
  const KernelCodes kernels = kernels_in_ptx(kPtx);
  EXPECT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels.at("nothing").parameter_bytes, ParameterBytes());
  EXPECT_EQ(kernels.at("strange").parameter_bytes, std::nullopt);
  EXPECT_TRUE(kernels_in_ptx(".entry").empty());
  EXPECT_EQ(kernels_in_ptx(".entry cut(.param .u64").at("cut").parameter_bytes, ParameterBytes{8});
}

/// As both formats have bytes that are not compressed: zstd in one raw block of a frame (RFC 8878),
/// LZ4 as literals (the LZ4 block format).
std::string zstd_of(const std::string& content) {
  const uint32_t size = static_cast<uint32_t>(content.size());
  const uint32_t block = size << 3 | 1;  // raw, and the last one
  return std::string("\x28\xb5\x2f\xfd\xa0", 5) + bytes_of(size) + bytes_of(block).substr(0, 3) +
         content;
}
std::string lz4_of(const std::string& content) {
  size_t left = content.size() - 15;
  std::string lengths;
  for (; left >= 255; left -= 255) lengths += '\xff';
  return '\xf0' + lengths + static_cast<char>(left) + content;
}

TEST(FatBinary, UnpacksCompressedCode) {
  const std::string code = cubin_with("norm", {8, 4});
  for (const auto& [library, flags, packed] :
       {std::tuple{"libzstd.so.1", 0x8000, zstd_of(code)}, {"liblz4.so.1", 0x2000, lz4_of(code)}}) {
    if (dlopen(library, RTLD_NOW) == nullptr) continue;  // it stays a bare launch
    const auto flag = static_cast<uint64_t>(flags);
    EXPECT_EQ(parameters_in({{2, 90, flag, packed, code.size()}}), "8 4 ") << library;
    EXPECT_EQ(parameters_in({{2, 90, flag, packed, code.size() + 1}}), "none") << library;
    EXPECT_EQ(parameters_in({{2, 90, flag, packed, uint64_t{1} << 40}}), "none") << library;
    EXPECT_EQ(parameters_in({{2, 90, flag, code, code.size()}}), "none") << library;
  }
  EXPECT_EQ(parameters_in({{2, 90, 0x1000, code, code.size()}}), "none");
}

}  // namespace
}  // namespace virtual_gpu
