#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// The types in the signatures of NCCL's functions. They are copied here because NCCL's header
/// comes in a package of hundreds of megabytes; names, numbers and layouts are those of nccl.h
/// 2.28.9.

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
};

enum ncclDataType_t : int {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
};

/// Numbers from ncclNumOps on are operations that the caller created.
enum ncclRedOp_t : int {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
};

/// Where the factor of an operation that the caller created lies.
enum ncclScalarResidence_t : int {
  ncclScalarDevice = 0,
  ncclScalarHostImmediate = 1,
};

struct ncclUniqueId {
  char internal[128];
};

/// The first fields of ncclConfig_t, up to the last one that is read here.
struct ncclConfig_t {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char* net_name;
  int split_share;
  int traffic_class;
  const char* comm_name;  // since 2.27
};

struct ncclComm;
using ncclComm_t = ncclComm*;

constexpr int NCCL_SPLIT_NOCOLOR = -1;
