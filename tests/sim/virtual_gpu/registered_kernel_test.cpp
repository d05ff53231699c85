// What a launch of a library's kernel tells, once somebody asks for it.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/virtual_gpu/control.h"
#include "tests/sim/virtual_gpu/elf_file.h"
#include "tests/sim/virtual_gpu/embedded_code.h"

extern "C" void** __cudaRegisterFatBinary(void*);
extern "C" void __cudaRegisterFunction(
    void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);

namespace virtual_gpu {
namespace {

using testing::ElementsAre;
using testing::Optional;

/// A library with one kernel, for every architecture. Its code stays: the kernel table points at
/// it.
const void* registered(const char* name, const std::vector<uint32_t>& parameters) {
  std::vector<Image> images;
  for (const uint32_t architecture : {80u, 90u, 100u, 120u}) {
    images.push_back({2, architecture, 0, cubin_with(name, parameters)});
  }
  const auto* const code = new Embedded(images);
  const char* const function = new char;
  void** const binary = __cudaRegisterFatBinary(const_cast<void*>(code->wrapper()));
  __cudaRegisterFunction(
      binary, function, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  return function;
}

class RegisteredKernel : public testing::Test {
 protected:
  void SetUp() override {
    onerank_virtual_gpu_set_event_sink(
        [](const onerank_virtual_gpu_event* event, void* self) {
          if (event->kind != ONERANK_VIRTUAL_GPU_KERNEL) return;
          auto& test = *static_cast<RegisteredKernel*>(self);
          test.bytes_ = event->bytes;
          test.told_.reset();
          if (event->address_count < 0) return;
          test.told_.emplace(event->addresses, event->addresses + event->address_count);
        },
        this);
    onerank_virtual_gpu_ask_for_arguments(
        [](void* self) { return static_cast<RegisteredKernel*>(self)->asks_ ? 1 : 0; }, this);
    ASSERT_EQ(cudaMalloc(&memory_, 4096), cudaSuccess);
  }
  void TearDown() override {
    onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
    onerank_virtual_gpu_ask_for_arguments([](void*) { return 0; }, nullptr);
    cudaFree(memory_);
  }

  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_); }

  void* memory_ = nullptr;
  bool asks_ = true;
  std::optional<std::vector<uint64_t>> told_;
  uint64_t bytes_ = 7;
};

TEST_F(RegisteredKernel, TellsTheAddressesInsideItsParametersIfItIsAsked) {
  struct {
    int rows = 5;
    uint64_t x, gamma;
  } parameters{.x = address(), .gamma = address() + 512};
  void* arguments[] = {&parameters};
  const void* const kernel = registered("norm_fwd", {sizeof parameters});
  ASSERT_EQ(cudaLaunchKernel(kernel, 1, 32, arguments, 0, nullptr), cudaSuccess);
  EXPECT_THAT(told_, Optional(ElementsAre(address(), address() + 512)));
  EXPECT_EQ(bytes_, 0u);
  asks_ = false;
  ASSERT_EQ(cudaLaunchKernel(kernel, 1, 32, arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(told_, std::nullopt);
}

// 132 sums of the gradient of gamma and 132 of beta, of 4096 fp32 columns, and the results.
TEST_F(RegisteredKernel, ThatFinishesANormTellsTheBytesOfItsSums) {
  struct {
    int groups = 132, blocks_of_group = 1, rows = 8192, columns = 4096;
    uint64_t x;
  } parameters{.x = address()};
  void* arguments[] = {&parameters};
  const uint32_t size = sizeof parameters;
  const auto bytes = [&](const char* name, const std::vector<uint32_t>& sizes) {
    EXPECT_EQ(cudaLaunchKernel(registered(name, sizes), 1, 32, arguments, 0, nullptr), cudaSuccess);
    return bytes_;
  };
  EXPECT_EQ(bytes("_Z26ln_bwd_finalize_tuned_kernel", {size}), 2u * 133 * 4096 * 4);
  EXPECT_EQ(bytes("_Z34rmsnorm_bwd_finalize_general_kernel", {size}), 133u * 4096 * 4);
  EXPECT_EQ(bytes("_Z34rmsnorm_bwd_finalize_general_kernel", {8}), 0u);
  parameters.columns = -1;
  EXPECT_EQ(bytes("_Z34rmsnorm_bwd_finalize_general_kernel", {size}), 0u);
}

/// As TransformerEngine 2.17's (Size: int64_t) and apex's (int).
template <typename Size, int lists, int tensors>
struct TensorLists {
  uint64_t addresses[lists][tensors] = {};
  Size sizes[tensors] = {};
  unsigned char block_to_tensor[320] = {};
  int block_to_chunk[320] = {};
  int start_tensor_this_launch = 0;

  /// Thread block `block` handles this chunk of this tensor.
  void give(int block, unsigned char tensor, int chunk) {
    block_to_tensor[block] = tensor;
    block_to_chunk[block] = chunk;
  }
};

/// Three blocks for two tensors of 250 and 40 elements in chunks of 100; the first chunk of the
/// first one was handled before. That is 100 + 50 + 40 elements.
template <typename Lists>
Lists of_190_elements() {
  Lists lists;
  lists.sizes[0] = 250;
  lists.sizes[1] = 40;
  lists.give(0, 0, 1);
  lists.give(1, 0, 2);
  lists.give(2, 1, 0);
  lists.give(3, 1, 0);  // of a launch before: there are three blocks
  return lists;
}

template <typename Chunk, typename Lists>
uint64_t launch(const char* kernel, Lists lists) {
  Chunk chunk = 100;
  void* flag = nullptr;
  void* arguments[] = {&chunk, &flag, &lists};
  const void* const function = registered(kernel, {sizeof(Chunk), 8, sizeof lists});
  return cudaLaunchKernel(function, 3, 512, arguments, 0, nullptr) == cudaSuccess ? 1 : 0;
}

using TransformerEngine4 = TensorLists<int64_t, 4, 36>;

// Gradients are read, the others read and written: 4 + 3 * 2 * 4 bytes an element.
TEST_F(RegisteredKernel, OfTensorListsTellsTheBytesOfItsChunks) {
  ASSERT_TRUE(
      launch<int64_t>("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi4ELb0EEN18"
                      "transformer_engine17multi_tensor_adam11AdamFunctorIffffiEEJffEEvl"
                      "PViT_T0_DpT1_",
                      of_190_elements<TransformerEngine4>()));
  EXPECT_EQ(bytes_, 190u * 28);
}

// bf16 gradients of 2 bytes, fp32 weights and moments.
TEST_F(RegisteredKernel, OfTensorListsKnowsTheTypeOfEachList) {
  ASSERT_TRUE(
      launch<int64_t>("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi4ELb0EEN18"
                      "transformer_engine17multi_tensor_adam11AdamFunctorIf13__nv_bfloat16"
                      "ffiEEJffEEvlPViT_T0_DpT1_",
                      of_190_elements<TransformerEngine4>()));
  EXPECT_EQ(bytes_, 190u * 26);
}

TEST_F(RegisteredKernel, OfTensorListsTellsThoseOfApexAndOfFunctorsThatNobodyKnows) {
  using Apex2 = TensorLists<int, 2, 64>;
  ASSERT_TRUE(
      launch<int>("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi2EE12ScaleFunctorI"
                  "N3c104HalfEfEJfEEviPViT_T0_DpT1_",
                  of_190_elements<Apex2>()));
  EXPECT_EQ(bytes_, 190u * (2 + 4));
  ASSERT_TRUE(
      launch<int>("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi2EE12OtherFunctorI"
                  "N3c104HalfEEJfEEviPViT_T0_DpT1_",
                  of_190_elements<Apex2>()));
  EXPECT_EQ(bytes_, 190u * (2 + 2));
}

TEST_F(RegisteredKernel, OfTensorListsOfAnotherFormTellsNoBytes) {
  constexpr const char* kNames[] = {
      // of three lists, which would be longer; of a type without a known size; without lists
      "_Z25multi_tensor_apply_kernelI18TensorListMetadataILi3EE10OneFunctorIfEEviPViT_T0_",
      "_Z25multi_tensor_apply_kernelI18TensorListMetadataILi4EE10OneFunctorI3OddEEviPViT_T0_",
      "multi_tensor_apply_kernel"};
  for (const char* name : kNames) {
    bytes_ = 7;
    ASSERT_TRUE(launch<int64_t>(name, of_190_elements<TransformerEngine4>())) << name;
    EXPECT_EQ(bytes_, 0u) << name;
    EXPECT_TRUE(told_.has_value()) << name;
  }
}

}  // namespace
}  // namespace virtual_gpu
