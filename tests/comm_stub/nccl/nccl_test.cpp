// The stub of libnccl, called as ProcessGroupNCCL calls it, over the virtual GPU's memory.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "comm_stub/nccl/nccl_types.h"
#include "sim/virtual_gpu/control.h"

extern "C" {
ncclResult_t ncclGetVersion(int*);
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*);
ncclResult_t ncclCommSplit(ncclComm_t, int color, int key, ncclComm_t*, ncclConfig_t*);
ncclResult_t ncclCommShrink(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int);
ncclResult_t ncclCommCount(ncclComm_t, int*);
ncclResult_t ncclCommUserRank(ncclComm_t, int*);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupEnd();
ncclResult_t ncclRedOpCreatePreMulSum(
    ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t);
ncclResult_t ncclMemAlloc(void**, size_t);
ncclResult_t ncclMemFree(void*);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
const char* ncclGetLastError(ncclComm_t);
ncclResult_t ncclAllReduce(
    const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclReduceScatter(
    const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclBroadcast(
    const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
}

namespace {

using testing::HasSubstr;

class Nccl : public testing::Test {
 protected:
  static constexpr size_t kBytes = 4096;

  void SetUp() override {
    onerank_virtual_gpu_remember_values(kBytes);
    ASSERT_EQ(cudaMalloc(&device_, kBytes), cudaSuccess);
    onerank_nccl_set_host(
        [](const onerank_nccl_call* call, void* self) {
          static_cast<Nccl*>(self)->calls_.push_back(std::string(call->kind) + " " + call->dtype +
                                                     " " + std::to_string(call->bytes) + " of " +
                                                     std::to_string(call->size));
          static_cast<Nccl*>(self)->groups_.push_back(call->group);
          static_cast<Nccl*>(self)->streams_.push_back(call->stream);
        },
        [](void* self) { ++static_cast<Nccl*>(self)->answered_; },
        [](void* self) { return static_cast<Nccl*>(self)->group_size_; },
        this);
  }
  void TearDown() override {
    onerank_nccl_set_host(nullptr, nullptr, nullptr, nullptr);
    cudaFree(device_);
  }

  ncclComm_t communicator(int size, int rank) {
    ncclComm_t made = nullptr;
    EXPECT_EQ(ncclCommInitRank(&made, size, {}, rank), ncclSuccess);
    return made;
  }

  template <class Number>
  void write(std::vector<Number> values) {
    cudaMemcpy(device_, values.data(), values.size() * sizeof(Number), cudaMemcpyHostToDevice);
  }
  template <class Number>
  std::vector<Number> read(size_t count, size_t offset_bytes = 0) {
    std::vector<Number> values(count);
    cudaMemcpy(values.data(),
               static_cast<char*>(device_) + offset_bytes,
               count * sizeof(Number),
               cudaMemcpyDeviceToHost);
    return values;
  }

  void* device_ = nullptr;
  int group_size_ = 0;
  std::vector<std::string> calls_;
  std::vector<uint64_t> groups_;
  std::vector<void*> streams_;
  int answered_ = 0;
};

TEST_F(Nccl, MakesACommunicatorOfAnySizeAlone) {
  const ncclComm_t made = communicator(16384, 77);
  int size = 0;
  int rank = 0;
  EXPECT_EQ(ncclCommCount(made, &size), ncclSuccess);
  EXPECT_EQ(ncclCommUserRank(made, &rank), ncclSuccess);
  EXPECT_EQ(size, 16384);
  EXPECT_EQ(rank, 77);
  EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
}

TEST_F(Nccl, HasTheVersionOfTheWheel) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 22809);
}

TEST_F(Nccl, AsksItsHostHowManyRanksShareAColor) {
  ncclComm_t part = nullptr;
  ASSERT_EQ(ncclCommSplit(communicator(8, 5), 1, 2, &part, nullptr), ncclSuccess);
  int size = 0;
  EXPECT_EQ(ncclCommCount(part, &size), ncclInvalidUsage);
  group_size_ = 4;
  EXPECT_EQ(ncclCommCount(part, &size), ncclSuccess);
  EXPECT_EQ(size, 4);
  ncclComm_t none = part;
  EXPECT_EQ(ncclCommSplit(communicator(8, 5), NCCL_SPLIT_NOCOLOR, 0, &none, nullptr), ncclSuccess);
  EXPECT_EQ(none, nullptr);
}

TEST_F(Nccl, ShrinksPastTheExcludedRanks) {
  int excluded[] = {1, 6};
  ncclComm_t part = nullptr;
  ASSERT_EQ(ncclCommShrink(communicator(8, 5), excluded, 2, &part, nullptr, 0), ncclSuccess);
  int size = 0;
  int rank = 0;
  ncclCommCount(part, &size);
  ncclCommUserRank(part, &rank);
  EXPECT_EQ(size, 6);
  EXPECT_EQ(rank, 4);
}

TEST_F(Nccl, SumsEqualRanks) {
  write<float>({1, 2.5});
  ASSERT_EQ(ncclAllReduce(device_, device_, 2, ncclFloat32, ncclSum, communicator(64, 3), nullptr),
            ncclSuccess);
  EXPECT_EQ(read<float>(2), (std::vector<float>{64, 160}));
  EXPECT_EQ(calls_, std::vector<std::string>{"all_reduce Float 8 of 64"});
}

/// A number in a type of NCCL's, and what several equal ones become: the bits.
struct Reduced {
  const char* name;
  ncclDataType_t type;
  uint64_t value;
  int ranks;
  uint64_t sum;
  uint64_t product;
};

class NcclTypes : public Nccl, public testing::WithParamInterface<Reduced> {
 protected:
  uint64_t reduce(ncclRedOp_t operation, ncclComm_t ranks) {
    write<uint64_t>({GetParam().value});
    EXPECT_EQ(ncclAllReduce(device_, device_, 1, GetParam().type, operation, ranks, nullptr),
              ncclSuccess);
    return read<uint64_t>(1)[0];
  }
};

TEST_P(NcclTypes, AreReduced) {
  const ncclComm_t ranks = communicator(GetParam().ranks, 0);
  EXPECT_EQ(reduce(ncclSum, ranks), GetParam().sum);
  EXPECT_EQ(reduce(ncclProd, ranks), GetParam().product);
  for (const ncclRedOp_t operation : {ncclAvg, ncclMax, ncclMin}) {
    EXPECT_EQ(reduce(operation, ranks), GetParam().value);
  }
  // A factor of the value itself makes the square of one rank's value.
  uint64_t factor = GetParam().value;
  ncclRedOp_t scaled = ncclSum;
  const ncclComm_t alone = communicator(1, 0);
  ASSERT_EQ(
      ncclRedOpCreatePreMulSum(&scaled, &factor, GetParam().type, ncclScalarHostImmediate, alone),
      ncclSuccess);
  const uint64_t square = reduce(scaled, alone);
  EXPECT_EQ(ncclRedOpDestroy(scaled, alone), ncclSuccess);
  EXPECT_EQ(square, reduce(ncclProd, communicator(2, 0)));
}

INSTANTIATE_TEST_SUITE_P(
    All,
    NcclTypes,
    // Of 3 ranks of 1.5 the sum is 4.5 and the product 3.375. Bits are IEEE 754's, and those of
    // "FP8 Formats for Deep Learning" (Micikevicius and others, 2022).
    testing::Values(
        Reduced{"int8", ncclInt8, 0xfe, 3, 0xfa, 0xf8},
        Reduced{"uint8", ncclUint8, 200, 2, 144, 64},  // 400 and 40000 less k times 256
        Reduced{"int32", ncclInt32, 0xfffffffe, 3, 0xfffffffa, 0xfffffff8},
        Reduced{"uint32", ncclUint32, 7, 3, 21, 343},
        Reduced{"int64", ncclInt64, ~uint64_t{1}, 3, ~uint64_t{5}, ~uint64_t{7}},
        Reduced{"uint64", ncclUint64, 7, 3, 21, 343},
        Reduced{"half", ncclFloat16, 0x3e00, 3, 0x4480, 0x42c0},
        Reduced{"half_too_large", ncclFloat16, 0x7bff, 2, 0x7c00, 0x7c00},
        // 2^-24, the smallest: three of them; their product is rounded to zero.
        Reduced{"half_subnormal", ncclFloat16, 0x0001, 3, 0x0003, 0x0000},
        Reduced{"bfloat16", ncclBfloat16, 0x3fc0, 3, 0x4090, 0x4058},
        Reduced{"float", ncclFloat32, 0x3fc00000, 3, 0x40900000, 0x40580000},
        Reduced{
            "double", ncclFloat64, 0x3ff8000000000000, 3, 0x4012000000000000, 0x400b000000000000},
        // 4.5 is there; 3.375 is a tie of 3.25 and 3.5, whose fraction is even.
        Reduced{"float8_e4m3", ncclFloat8e4m3, 0x3c, 3, 0x49, 0x46},
        // 448 is the largest, and stays.
        Reduced{"float8_e4m3_too_large", ncclFloat8e4m3, 0x7e, 2, 0x7e, 0x7e},
        // 4.5 is a tie of 4 and 5, 3.375 is nearest to 3.5.
        Reduced{"float8_e5m2", ncclFloat8e5m2, 0x3e, 3, 0x44, 0x43}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_F(Nccl, ScalesByAFactorThatIsOnTheDevice) {
  const ncclComm_t ranks = communicator(4, 0);
  write<float>({3, 0.5});
  ncclRedOp_t scaled = ncclSum;
  void* const factor = static_cast<char*>(device_) + sizeof(float);
  ASSERT_EQ(ncclRedOpCreatePreMulSum(&scaled, factor, ncclFloat32, ncclScalarDevice, ranks),
            ncclSuccess);
  ncclAllReduce(device_, device_, 1, ncclFloat32, scaled, ranks, nullptr);
  EXPECT_EQ(read<float>(2), (std::vector<float>{6, 0.5}));
  onerank_virtual_gpu_forget(factor, sizeof(float), UINT64_MAX);
  ncclAllReduce(device_, device_, 1, ncclFloat32, scaled, ranks, nullptr);
  EXPECT_EQ(onerank_virtual_gpu_peek(device_, sizeof(float), nullptr), 0);
  EXPECT_EQ(ncclRedOpDestroy(scaled, ranks), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(device_, device_, 1, ncclFloat32, scaled, ranks, nullptr),
            ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(ranks), HasSubstr("no operation "));
}

TEST_F(Nccl, LeavesTheMaximumOfEqualRanks) {
  write<int64_t>({-7});
  ncclAllReduce(device_, device_, 1, ncclInt64, ncclMax, communicator(8, 0), nullptr);
  EXPECT_EQ(read<int64_t>(1), std::vector<int64_t>{-7});
}

TEST_F(Nccl, DoesNotKnowSumsOfWhatItDoesNotKnow) {
  write<int32_t>({5});
  onerank_virtual_gpu_forget(device_, 4, UINT64_MAX);
  ncclAllReduce(device_, device_, 1, ncclInt32, ncclSum, communicator(8, 0), nullptr);
  int32_t value = 1;
  EXPECT_EQ(onerank_virtual_gpu_peek(device_, 4, &value), 0);
}

TEST_F(Nccl, GathersItsOwnShardIntoEverySlot) {
  write<int32_t>({5, 6});
  char* const gathered = static_cast<char*>(device_) + 1024;
  ASSERT_EQ(ncclAllGather(device_, gathered, 2, ncclInt32, communicator(3, 1), nullptr),
            ncclSuccess);
  EXPECT_EQ(read<int32_t>(6, 1024), (std::vector<int32_t>{5, 6, 5, 6, 5, 6}));
  EXPECT_EQ(calls_, std::vector<std::string>{"all_gather Int 24 of 3"});
}

TEST_F(Nccl, ReducesItsOwnChunk) {
  write<int32_t>({1, 2, 3});
  char* const reduced = static_cast<char*>(device_) + 1024;
  ASSERT_EQ(ncclReduceScatter(device_, reduced, 1, ncclInt32, ncclSum, communicator(3, 1), nullptr),
            ncclSuccess);
  EXPECT_EQ(read<int32_t>(1, 1024), std::vector<int32_t>{6});
}

TEST_F(Nccl, TakesAnAbsentRootToHoldWhatThisRankHolds) {
  write<int32_t>({5});
  ASSERT_EQ(ncclBroadcast(nullptr, device_, 1, ncclInt32, 0, communicator(3, 1), nullptr),
            ncclInvalidArgument);
  ASSERT_EQ(ncclBroadcast(device_, device_, 1, ncclInt32, 0, communicator(3, 1), nullptr),
            ncclSuccess);
  EXPECT_EQ(read<int32_t>(1), std::vector<int32_t>{5});
}

TEST_F(Nccl, RefusesWithAReasonAndRecordsNothing) {
  const ncclComm_t made = communicator(4, 0);
  EXPECT_EQ(ncclSend(device_, 1, ncclInt8, 4, made, nullptr), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(made), HasSubstr("ncclSend: no member 4 of 4"));
  EXPECT_EQ(ncclSend(nullptr, 1, ncclInt8, 1, made, nullptr), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(made), HasSubstr("a null buffer"));
  EXPECT_EQ(ncclSend(device_, 1, static_cast<ncclDataType_t>(99), 1, made, nullptr),
            ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(made), HasSubstr("no data type 99"));
  EXPECT_EQ(ncclSend(device_, 1, ncclInt8, 1, nullptr, nullptr), ncclInvalidArgument);
  ncclComm_t refused = nullptr;
  EXPECT_EQ(ncclCommInitRank(&refused, 4, {}, 4), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_TRUE(calls_.empty());
}

TEST_F(Nccl, TakesTheNameThatTheCallerGives) {
  ncclConfig_t config{};
  config.size = sizeof config;
  config.comm_name = "data parallel";
  ncclComm_t made = nullptr;
  ASSERT_EQ(ncclCommInitRankConfig(&made, 2, {}, 0, &config), ncclSuccess);
  static std::string name;
  onerank_nccl_set_host(
      [](const onerank_nccl_call* call, void*) { name = call->communicator_name; },
      nullptr,
      nullptr,
      nullptr);
  ncclSend(device_, 1, ncclInt8, 1, made, nullptr);
  EXPECT_EQ(name, "data parallel");
}

TEST_F(Nccl, TellsTheStreamOfACallAndTheOutermostGroupThatItIsIn) {
  ncclComm_t made = communicator(4, 1);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  ncclSend(device_, 1, ncclInt8, 2, made, nullptr);
  ncclGroupStart();
  ncclSend(device_, 1, ncclInt8, 2, made, stream);
  ncclGroupStart();
  ncclRecv(device_, 1, ncclInt8, 0, made, stream);
  ncclGroupEnd();
  ncclRecv(device_, 1, ncclInt8, 2, made, stream);
  ncclGroupEnd();
  ncclGroupStart();
  ncclSend(device_, 1, ncclInt8, 2, made, stream);
  ncclGroupEnd();
  ASSERT_EQ(groups_.size(), 5u);
  EXPECT_EQ(groups_[0], 0u);
  EXPECT_NE(groups_[1], 0u);
  EXPECT_EQ(groups_[2], groups_[1]);
  EXPECT_EQ(groups_[3], groups_[1]);
  EXPECT_EQ(groups_[4], groups_[1] + 1);
  EXPECT_EQ(streams_[0], nullptr);
  EXPECT_EQ(streams_[1], stream);
  EXPECT_EQ(answered_, 5);
  cudaStreamDestroy(stream);
}

/// The virtual GPU remembers small values, so it can play a device that holds them.
class NcclOnARealDevice : public Nccl {
 protected:
  void SetUp() override {
    Nccl::SetUp();
    onerank_nccl_set_memory_is_real(1);
  }
  void TearDown() override {
    onerank_nccl_set_memory_is_real(0);
    Nccl::TearDown();
  }
};

TEST_F(NcclOnARealDevice, SumsSmallBuffersOnTheHostInTheOrderOfTheStream) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  for (int i = 0; i < 3; ++i) {  // the staging memory is used again
    write<float>({1, 2.5});
    ASSERT_EQ(ncclAllReduce(device_, device_, 2, ncclFloat32, ncclSum, communicator(64, 3), stream),
              ncclSuccess);
    EXPECT_EQ(read<float>(2), (std::vector<float>{64, 160}));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(NcclOnARealDevice, LeavesAveragesAndWhatAFactorOnTheDeviceScalesAsTheyAre) {
  write<float>({1.5, 0.5});
  const ncclComm_t made = communicator(8, 0);
  ncclRedOp_t scaled = ncclSum;
  ASSERT_EQ(ncclRedOpCreatePreMulSum(
                &scaled, static_cast<float*>(device_) + 1, ncclFloat32, ncclScalarDevice, made),
            ncclSuccess);
  ASSERT_EQ(ncclAllReduce(device_, device_, 1, ncclFloat32, scaled, made, nullptr), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(device_, device_, 1, ncclFloat32, ncclAvg, made, nullptr), ncclSuccess);
  EXPECT_EQ(read<float>(1), std::vector<float>{1.5});
}

TEST_F(NcclOnARealDevice, GathersInPlaceIntoEverySlot) {
  write<int32_t>({1, 2, 3, 4, 5, 6, 7});
  ASSERT_EQ(ncclAllGather(static_cast<char*>(device_) + 3 * sizeof(int32_t),
                          device_,
                          1,
                          ncclInt32,
                          communicator(7, 3),
                          nullptr),
            ncclSuccess);
  EXPECT_EQ(read<int32_t>(7), std::vector<int32_t>(7, 4));
}

TEST_F(NcclOnARealDevice, ReceivesZeros) {
  write<int32_t>({5, 6});
  ASSERT_EQ(ncclRecv(device_, 1, ncclInt32, 1, communicator(4, 0), nullptr), ncclSuccess);
  EXPECT_EQ(read<int32_t>(2), (std::vector<int32_t>{0, 6}));
}

TEST_F(Nccl, IsLinkedWithNoCudaRuntime) {
  // Preloaded on a machine with a real GPU, it must not bring the virtual one's runtime.
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&ncclGetVersion), &info), 0);
  FILE* const pipe = popen(("readelf --dynamic " + std::string(info.dli_fname)).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (char line[512]; fgets(line, sizeof line, pipe) != nullptr;) text += line;
  ASSERT_EQ(pclose(pipe), 0);
  EXPECT_THAT(text, HasSubstr("libnccl.so.2"));
  EXPECT_THAT(text, testing::Not(HasSubstr("libcu")));
}

TEST_F(Nccl, AllocatesFromTheDevice) {
  const uint64_t before = onerank_virtual_gpu_used_bytes();
  void* address = nullptr;
  ASSERT_EQ(ncclMemAlloc(&address, 1), ncclSuccess);
  EXPECT_EQ(onerank_virtual_gpu_used_bytes() - before, uint64_t{2} << 20);
  EXPECT_EQ(ncclMemFree(address), ncclSuccess);
}

}  // namespace
