#pragma once

#include <cstddef>
#include <cstdint>

/// The types and numbers of cuDNN 9 that the stub needs. They are copied here because the headers
/// come in a package of hundreds of megabytes; names and numbers are those of its documentation.

struct CUstream_st;
using cudaStream_t = CUstream_st*;
/// Of libcudart; `attribute` is a number of cudaDeviceAttr.
extern "C" int cudaDeviceGetAttribute(int* value, int attribute, int device);

enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
  CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
};

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
using cudnnHandle_t = cudnnContext*;

namespace virtual_gpu::cudnn {

enum class DataType : int {
  kFloat = 0,
  kDouble = 1,
  kHalf = 2,
  kInt8 = 3,
  kInt32 = 4,
  kUint8 = 6,
  kBfloat16 = 9,
  kInt64 = 10,
  kBoolean = 11,
  kFp8E4m3 = 12,
  kFp8E5m2 = 13,
};

/// Kinds of descriptors (cudnnBackendDescriptorType_t).
enum class Kind : int {
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristics = 4,
  kExecutionPlan = 5,
  kKnobChoice = 7,
  kConvolutionForward = 10,
  kConvolutionBackwardFilter = 11,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kGenStats = 14,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmulOperation = 19,
  kBatchNormFinalize = 20,
  kReductionOperation = 22,
  kBatchNormBackwardWeights = 23,
  kNormForward = 29,
  kNormBackward = 30,
  kReshape = 31,
  kRngOperation = 33,
  kKernelCache = 34,
  kExpandBandMatrix = 39,
  kContractBandMatrix = 40,
  kAttentionForward = 41,
  kAttentionBackward = 43,
};

/// Names of attributes (cudnnBackendAttributeName_t).
enum Name : int {
  kPointwiseMode = 0,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kHeuristicsDevice = 204,
  kConfigEngine = 300,
  kConfigIntermediates = 301,
  kConfigKnobs = 302,
  kConfigWorkspaceBytes = 303,
  kConfigSharedBytes = 304,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kPlanDevice = 407,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kBackwardDataW = 709,
  kBackwardDataX = 710,
  kBackwardDataY = 711,
  kBackwardFilterW = 715,
  kBackwardFilterX = 716,
  kBackwardFilterY = 717,
  kPointwiseDescriptor = 750,
  kGraphOperations = 801,
  kGraphEngineCount = 802,
  kTensorDataType = 901,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kEngineGraph = 1300,
  kEngineIndex = 1301,
  kEngineKnobs = 1302,
  kEngineNumericalNotes = 1303,
  kEngineLayouts = 1304,
  kEngineBehaviorNotes = 1305,
  kEngineDevice = 1307,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kAttentionForwardQ = 2800,
  kAttentionForwardK = 2801,
  kAttentionForwardV = 2802,
  kAttentionBackwardQ = 2851,
  kAttentionBackwardK = 2852,
  kAttentionBackwardV = 2853,
  kDeviceJson = 2702,
};

/// Types of attributes (cudnnBackendAttributeType_t).
enum AttributeType : int {
  kHandleType = 0,
  kDataTypeType = 1,
  kBooleanType = 2,
  kInt64Type = 3,
  kFloatType = 4,
  kDoubleType = 5,
  kPointerType = 6,
  kHeuristicsModeType = 8,
  kNumericalNoteType = 11,
  kDescriptorType = 15,
  kCharType = 24,
  kFractionType = 26,
};

inline constexpr int kNoteTensorCore = 0;  // CUDNN_NUMERICAL_NOTE_TENSOR_CORE
inline constexpr int kPointwiseAdd = 0;
inline constexpr int kPointwiseCompareGreaterOrEqual = 303;

}  // namespace virtual_gpu::cudnn
