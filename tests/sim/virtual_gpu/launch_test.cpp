// What a launch tells of the memory that its kernel can write to.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "sim/virtual_gpu/control.h"

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

/// An ELF file with the section .nv.info.count, as ptxas 13.0 writes it for
///     .entry count(.param .u64 a, .param .u32 b, .param .align 8 .b8 c[24])
/// but for the large parameter, which is in the form of those above 4 KiB.
std::string cubin() {
  static constexpr unsigned char kInfo[] = {
      0x04, 0x37, 0x04, 0x00, 0x82, 0x00, 0x00, 0x00,  // the version of the interface
      0x04, 0x45, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00,  // c, of 0x18 bytes
      0x02, 0x00, 0x10, 0x00, 0x18, 0x00, 0x00, 0x05,  //
      0x04, 0x17, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00,  // b, of 4
      0x01, 0x00, 0x08, 0x00, 0x00, 0xf0, 0x11, 0x00,  //
      0x04, 0x17, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00,  // a, of 8
      0x00, 0x00, 0x00, 0x00, 0x00, 0xf0, 0x21, 0x00,  //
      0x03, 0x1b, 0xff, 0x00,                          // registers
  };
  static constexpr char kNames[] = "\0.nv.info.count\0.nv.info.nothing";
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shoff = sizeof header;
  Elf64_Shdr sections[3]{};
  sections[0].sh_offset = sizeof header + sizeof sections;
  sections[0].sh_size = sizeof kNames;
  sections[1].sh_name = 1;
  sections[1].sh_offset = sections[0].sh_offset + sizeof kNames;
  sections[1].sh_size = sizeof kInfo;
  sections[2].sh_name = sizeof "\0.nv.info.count";
  sections[2].sh_offset = sections[1].sh_offset + sizeof kInfo;
  std::string file;
  const auto append = [&](const void* bytes, size_t count) {
    file.append(static_cast<const char*>(bytes), count);
  };
  append(&header, sizeof header);
  append(sections, sizeof sections);
  append(kNames, sizeof kNames);
  append(kInfo, sizeof kInfo);
  return file;
}

struct Three {
  uint64_t a;
  uint32_t b;
  struct {
    uint64_t words[3];
  } c;
};

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    onerank_virtual_gpu_set_event_sink(
        [](const onerank_virtual_gpu_event* event, void* self) {
          if (event->kind != ONERANK_VIRTUAL_GPU_KERNEL) return;
          auto& test = *static_cast<Launch*>(self);
          test.told_.reset();
          if (event->address_count < 0) return;
          test.told_.emplace(event->addresses, event->addresses + event->address_count);
          test.numbers_.assign(event->numbers, event->numbers + event->number_count);
        },
        this);
    ASSERT_EQ(cuMemAlloc(&first_, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&second_, 4096), CUDA_SUCCESS);
  }
  void TearDown() override {
    onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
    cuMemFree(first_);
    cuMemFree(second_);
  }

  CUfunction function(const std::string& image, const char* name) {
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, image.c_str()), CUDA_SUCCESS);
    return function_of(module, name);
  }

  CUfunction function_of(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
  }

  void launch(CUfunction function, Three values) {
    void* arguments[] = {&values.a, &values.b, &values.c};
    EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
  }

  CUdeviceptr first_ = 0;
  CUdeviceptr second_ = 0;
  std::optional<std::vector<uint64_t>> told_ = std::vector<uint64_t>{7};
  std::vector<int32_t> numbers_;
};

TEST_F(Launch, OfACubinTellsEveryDeviceAddressAmongItsParameters) {
  const CUfunction count = function(cubin(), "count");
  launch(count, {first_ + 16, 5, {{1, second_ + 4095, 0}}});
  EXPECT_THAT(told_, Optional(ElementsAre(first_ + 16, second_ + 4095)));
  EXPECT_THAT(numbers_, ElementsAre(5));
  launch(count, {12, 5, {{1, 2, 3}}});
  EXPECT_THAT(told_, Optional(IsEmpty()));
}

TEST_F(Launch, OfPtxTellsTheSame) {
  const CUfunction count = function(
      "//\n.version 8.0\n.entry count(.param .u64 a, .param .u32 b, .param .align 8 .b8 c[24]) {}",
      "count");
  launch(count, {first_ + 16, 5, {{1, second_ + 4095, 0}}});
  EXPECT_THAT(told_, Optional(ElementsAre(first_ + 16, second_ + 4095)));
  EXPECT_THAT(numbers_, ElementsAre(5));
}

TEST_F(Launch, OfACubinInAFileTellsTheSame) {
  const std::string path = testing::TempDir() + "launch_test.cubin";
  std::ofstream(path, std::ios::binary) << cubin();
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_SUCCESS);
  launch(function_of(module, "count"), {first_, 0, {}});
  EXPECT_THAT(told_, Optional(ElementsAre(first_)));
  EXPECT_EQ(cuModuleLoad(&module, "/no/such/file"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(Launch, OfACubinThatIsCutOffTellsThatItIsNotKnown) {
  const std::string path = testing::TempDir() + "launch_test_cut.cubin";
  for (const size_t bytes : {size_t{5}, sizeof(Elf64_Ehdr) + 8, cubin().size() - 60}) {
    std::ofstream(path, std::ios::binary) << cubin().substr(0, bytes);
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_SUCCESS);
    told_.emplace();
    launch(function_of(module, "count"), {first_, 0, {}});
    EXPECT_EQ(told_, std::nullopt) << bytes << " bytes";
  }
}

TEST_F(Launch, OfAKernelWithoutParametersTellsThatThereIsNone) {
  const CUfunction nothing = function(cubin(), "nothing");
  EXPECT_EQ(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(told_, Optional(IsEmpty()));
}

TEST_F(Launch, WithATensorMapTellsTheMemoryThatItIsMadeFor) {
  CUtensorMap map;
  ASSERT_EQ(cuTensorMapEncodeTiled(&map,
                                   CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                   1,
                                   reinterpret_cast<void*>(second_),
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE,
                                   CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            CUDA_SUCCESS);
  uint64_t a = 0;
  uint32_t b = 0;
  void* arguments[] = {&a, &b, &map};  // of which the kernel takes 24 bytes
  const CUfunction count = function(cubin(), "count");
  EXPECT_EQ(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(told_, Optional(ElementsAre(second_)));
}

TEST_F(Launch, OfCodeThatDoesNotTellItsParametersTellsSo) {
  launch(function("virtual", "count"), {first_, 0, {}});
  EXPECT_EQ(told_, std::nullopt);
  told_.emplace();
  launch(function(cubin(), "another"), {first_, 0, {}});
  EXPECT_EQ(told_, std::nullopt);
  told_.emplace();
  static const char of_the_runtime = 0;
  EXPECT_EQ(cudaLaunchKernel(&of_the_runtime, 1, 32, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(told_, std::nullopt);
}

}  // namespace
