// cuDNN as torch calls it: convolutions by the backend, batch norm and recurrent layers by the
// older functions. Workspaces are those without an installed cuDNN.

#include <gmock/gmock.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/virtual_gpu/control.h"
#include "sim/virtual_gpu/cudnn/cudnn_types.h"

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t*);
cudnnStatus_t cudnnDestroy(cudnnHandle_t);
cudnnStatus_t cudnnBackendCreateDescriptor(int, void**);
cudnnStatus_t cudnnBackendDestroyDescriptor(void*);
cudnnStatus_t cudnnBackendSetAttribute(void*, int, int, int64_t, const void*);
cudnnStatus_t cudnnBackendGetAttribute(void*, int, int, int64_t, int64_t*, void*);
cudnnStatus_t cudnnBackendFinalize(void*);
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, void*, void*);
cudnnStatus_t cudnnCreateTensorDescriptor(void**);
cudnnStatus_t cudnnDestroyTensorDescriptor(void*);
cudnnStatus_t cudnnGetTensorNdDescriptor(void*, int, int*, int*, int*, int*);
cudnnStatus_t cudnnCreateRNNDescriptor(void**);
cudnnStatus_t cudnnDestroyRNNDescriptor(void*);
cudnnStatus_t cudnnSetRNNDescriptor_v8(
    void*, int, int, int, int, int, int, int, int, int, int, int, int, void*, unsigned);
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, void*, size_t*);
cudnnStatus_t cudnnGetRNNWeightParams(
    cudnnHandle_t, void*, int, size_t, const void*, int, void*, void**, void*, void**);
}

namespace {

using namespace virtual_gpu::cudnn;
using testing::ElementsAre;

constexpr int kBfloat16 = 9;  // CUDNN_DATA_BFLOAT16

/// A descriptor of the backend.
class Backend {
 public:
  explicit Backend(int kind) { cudnnBackendCreateDescriptor(kind, &descriptor_); }
  explicit Backend(Kind kind) : Backend(static_cast<int>(kind)) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  ~Backend() { cudnnBackendDestroyDescriptor(descriptor_); }

  Backend& number(int name, int value) { return set(name, kDataTypeType, 1, &value); }
  Backend& numbers(int name, const std::vector<int64_t>& values) {
    return set(name, kInt64Type, static_cast<int64_t>(values.size()), values.data());
  }
  Backend& others(int name, const std::vector<void*>& values) {
    return set(name, kDescriptorType, static_cast<int64_t>(values.size()), values.data());
  }
  cudnnStatus_t finalize() { return cudnnBackendFinalize(descriptor_); }
  int64_t read(int name) {
    int64_t value = -1, count = 0;
    cudnnBackendGetAttribute(descriptor_, name, kInt64Type, 1, &count, &value);
    return count == 1 ? value : -1;
  }
  void* get() { return descriptor_; }

 private:
  Backend& set(int name, int type, int64_t count, const void* values) {
    EXPECT_EQ(cudnnBackendSetAttribute(descriptor_, name, type, count, values), 0);
    return *this;
  }
  void* descriptor_ = nullptr;
};

std::vector<int64_t> strides_of(const std::vector<int64_t>& dims, bool channels_last) {
  const auto [c, h, w] = std::array{dims[1], dims[2], dims[3]};
  if (channels_last) return {c * h * w, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

void describe(Backend& tensor, const std::vector<int64_t>& dims, bool channels_last, int type) {
  tensor.number(kTensorDataType, type)
      .numbers(kTensorDims, dims)
      .numbers(kTensorStrides, strides_of(dims, channels_last));
  EXPECT_EQ(tensor.finalize(), 0);
}

/// What the heuristics choose first for a forward convolution, and its execution.
class Chosen {
 public:
  Chosen(const std::vector<int64_t>& x,
         const std::vector<int64_t>& w,
         const std::vector<int64_t>& y,
         bool channels_last,
         int type) {
    describe(x_, x, channels_last, type);
    describe(w_, w, channels_last, type);
    describe(y_, y, channels_last, type);
    operation_.others(kForwardX, {x_.get()})
        .others(kForwardW, {w_.get()})
        .others(kForwardY, {y_.get()});
    EXPECT_EQ(operation_.finalize(), 0);
    graph_.others(kGraphOperations, {operation_.get()});
    EXPECT_EQ(graph_.finalize(), 0);
    heuristics_.others(kHeuristicsGraph, {graph_.get()}).number(kHeuristicsMode, 0);
    EXPECT_EQ(heuristics_.finalize(), 0);
    void* config = config_.get();
    cudnnBackendGetAttribute(
        heuristics_.get(), kHeuristicsResults, kDescriptorType, 1, &count_, &config);
    plan_.others(kPlanConfig, {config_.get()});
    EXPECT_EQ(plan_.finalize(), 0);
  }

  int64_t workspace() { return plan_.read(kPlanWorkspaceBytes); }
  int64_t engines() {
    int64_t all = 0;
    cudnnBackendGetAttribute(heuristics_.get(), kHeuristicsResults, 15, 0, &all, nullptr);
    return all;
  }
  void* plan() { return plan_.get(); }

 private:
  Backend x_{Kind::kTensor}, w_{Kind::kTensor}, y_{Kind::kTensor};
  Backend operation_{Kind::kConvolutionForward}, graph_{Kind::kOperationGraph};
  Backend heuristics_{Kind::kEngineHeuristics}, config_{Kind::kEngineConfig};
  Backend plan_{Kind::kExecutionPlan};
  int64_t count_ = 0;
};

// Of ResNet-50 with 64 images, on an H100, as cuDNN 9.19 answers (its planning without a device).
TEST(Cudnn, CopiesTensorsThatTensorCoresCannotReadIntoTheWorkspace) {
  const std::vector<int64_t> image = {64, 64, 56, 56}, filter = {64, 64, 3, 3};
  EXPECT_EQ(Chosen(image, filter, image, true, kBfloat16).workspace(), 131);
  EXPECT_NEAR(static_cast<double>(Chosen(image, filter, image, false, kBfloat16).workspace()),
              51454099,
              147);
  // Three channels, of which tensor cores read eight.
  EXPECT_NEAR(static_cast<double>(
                  Chosen({64, 3, 224, 224}, {64, 3, 7, 7}, {64, 64, 112, 112}, true, kBfloat16)
                      .workspace()),
              51430416,
              147);
  // The layout of a filter of one element is both.
  EXPECT_NEAR(static_cast<double>(
                  Chosen(image, {256, 64, 1, 1}, {64, 256, 56, 56}, false, kBfloat16).workspace()),
              128450707,
              147);
}

TEST(Cudnn, OffersSinglePrecisionWithAndWithoutTensorCores) {
  const std::vector<int64_t> image = {8, 64, 56, 56}, filter = {64, 64, 3, 3};
  EXPECT_EQ(Chosen(image, filter, image, true, 0).engines(), 2);
  EXPECT_EQ(Chosen(image, filter, image, true, kBfloat16).engines(), 1);
}

struct Executed {
  std::vector<onerank_virtual_gpu_product> products;
  std::vector<std::pair<std::string, uint64_t>> copies;  ///< into other layouts, with their bytes
};

Executed execute(void* plan) {
  Executed found;
  cudnnHandle_t handle = nullptr;
  cudnnCreate(&handle);
  onerank_virtual_gpu_set_event_sink(
      [](const onerank_virtual_gpu_event* event, void* context) {
        Executed& all = *static_cast<Executed*>(context);
        if (event->kind == ONERANK_VIRTUAL_GPU_PRODUCT) all.products.push_back(*event->product);
        if (event->kind == ONERANK_VIRTUAL_GPU_COPY) {
          all.copies.emplace_back(event->name, event->bytes);
        }
      },
      &found);
  EXPECT_EQ(cudnnBackendExecute(handle, plan, nullptr), 0);
  onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
  cudnnDestroy(handle);
  return found;
}

TEST(Cudnn, CopiesEachTensorThatTensorCoresCannotRead) {
  const std::vector<int64_t> image = {64, 64, 56, 56}, filter = {64, 64, 3, 3};
  constexpr uint64_t kImage = 2ull * 64 * 64 * 56 * 56, kFilter = 2ull * 64 * 64 * 9;
  constexpr const char* kName = "cudnn::nchwToNhwcKernel<half>";
  const auto copies = [](const std::vector<int64_t>& x,
                         const std::vector<int64_t>& w,
                         const std::vector<int64_t>& y,
                         bool channels_last) {
    return execute(Chosen(x, w, y, channels_last, kBfloat16).plan()).copies;
  };
  EXPECT_THAT(copies(image, filter, image, false),
              ElementsAre(std::pair(kName, 2 * kImage),
                          std::pair(kName, 2 * kFilter),
                          std::pair(kName, 2 * kImage)));
  EXPECT_THAT(copies(image, filter, image, true), testing::IsEmpty());
  EXPECT_THAT(copies(image, {64, 64, 1, 1}, image, false), testing::IsEmpty());
  // 49 positions do not fill vector loads.
  EXPECT_EQ(copies({64, 64, 7, 7}, {64, 64, 1, 1}, {64, 64, 7, 7}, false).size(), 2u);
  // Three channels, of which tensor cores read eight.
  EXPECT_THAT(copies({64, 3, 224, 224}, {64, 3, 7, 7}, {64, 64, 112, 112}, true),
              testing::Contains(testing::Key("cudnn::nhwcAddPaddingKernel")));
}

TEST(Cudnn, TellsAConvolutionAsTheProductAsWhichItIsComputed) {
  const auto products =
      execute(Chosen({32, 64, 56, 56}, {128, 64, 3, 3}, {32, 128, 28, 28}, true, kBfloat16).plan())
          .products;
  ASSERT_EQ(products.size(), 1u);
  EXPECT_EQ(products[0].convolution, ONERANK_VIRTUAL_GPU_CONVOLUTION_FORWARD);
  EXPECT_EQ(products[0].channels_in, 64);
  EXPECT_EQ(products[0].channels_out, 128);
  EXPECT_EQ(products[0].window, 9);
  EXPECT_EQ(products[0].inputs, 32 * 64 * 56 * 56);
  EXPECT_EQ(products[0].outputs, 32 * 128 * 28 * 28);
  EXPECT_EQ(products[0].n, 32 * 28 * 28);
  EXPECT_EQ(products[0].m, 128);
  EXPECT_EQ(products[0].k, 64 * 9);
  EXPECT_EQ(products[0].type, 14);  // CUDA_R_16BF
  EXPECT_EQ(products[0].bytes, 2 * (32 * 64 * 56 * 56 + 128 * 64 * 9 + 32 * 128 * 28 * 28));
}

TEST(Cudnn, RefusesAnOperationThatItDoesNotKnowByItsKind) {
  Backend operation(27);  // CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR
  Backend graph(Kind::kOperationGraph);
  EXPECT_EQ(operation.finalize(), 0);
  graph.others(kGraphOperations, {operation.get()});
  testing::internal::CaptureStderr();
  EXPECT_EQ(graph.finalize(), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("an operation of cuDNN's backend, kind 27"));
}

TEST(Cudnn, RefusesToExecuteWhatWasNotFinalized) {
  Backend plan(Kind::kExecutionPlan);
  EXPECT_EQ(cudnnBackendExecute(nullptr, plan.get(), nullptr),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
}

// Two layers, 3 inputs, 5 states: gates of 20 rows. The matrices of both layers lie before the
// biases.
TEST(Cudnn, LaysTheWeightsOfAnLstmOutAsTorchExpects) {
  cudnnHandle_t handle = nullptr;
  void* rnn = nullptr;
  void* tensor = nullptr;
  cudnnCreate(&handle);
  cudnnCreateRNNDescriptor(&rnn);
  cudnnCreateTensorDescriptor(&tensor);
  cudnnSetRNNDescriptor_v8(rnn, 0, 2, 2, 0, 0, 0, 0, 0, 3, 5, 5, 2, nullptr, 0);
  size_t bytes = 0;
  cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes);
  EXPECT_EQ(bytes, 4u * (20 * (3 + 5) + 20 * (5 + 5) + 2 * 2 * 20));
  const auto place = [&](int layer, int number, bool is_bias) {
    void* address = nullptr;
    cudnnGetRNNWeightParams(handle,
                            rnn,
                            layer,
                            bytes,
                            reinterpret_cast<void*>(4096),
                            number,
                            is_bias ? nullptr : tensor,
                            is_bias ? nullptr : &address,
                            is_bias ? tensor : nullptr,
                            is_bias ? &address : nullptr);
    return (reinterpret_cast<uintptr_t>(address) - 4096) / 4;
  };
  EXPECT_EQ(place(0, 0, false), 0u);
  EXPECT_EQ(place(0, 1, false), 15u);                  // the second gate of the input
  EXPECT_EQ(place(0, 4, false), 60u);                  // the first of the state
  EXPECT_EQ(place(1, 0, false), 160u);                 // the second layer
  EXPECT_EQ(place(0, 0, true), 360u);                  // all biases behind
  EXPECT_EQ(place(1, 4, true), 360u + 40u + 4u * 5u);  // the second bias of the second layer
  int type = -1, count = 0;
  std::array<int, 3> dims = {}, strides = {};
  cudnnGetRNNWeightParams(handle, rnn, 1, bytes, nullptr, 0, tensor, nullptr, nullptr, nullptr);
  cudnnGetTensorNdDescriptor(tensor, 3, &type, &count, dims.data(), strides.data());
  EXPECT_THAT(dims, ElementsAre(1, 5, 5));
  cudnnDestroyTensorDescriptor(tensor);
  cudnnDestroyRNNDescriptor(rnn);
  cudnnDestroy(handle);
}

}  // namespace
