#include "comm_stub/nccl/nccl_communicator.h"

#include <cstring>
#include <utility>

#include "comm_stub/nccl/calls.h"
#include "comm_stub/nccl/cuda_runtime.h"

/// How communicators come and go: each process makes its own, without asking the others.
namespace nccl {
namespace {

thread_local std::string refusal;

const char* name_in(const ncclConfig_t* config) {
  const bool has_name = config != nullptr &&
                        config->size >= offsetof(ncclConfig_t, comm_name) + sizeof(char*) &&
                        config->comm_name != nullptr;
  return has_name ? config->comm_name : "";
}

ncclResult_t make(ncclComm_t* made, int size, int rank, const ncclConfig_t* config) {
  static std::atomic<int> next_number{0};
  if (made == nullptr) return refuse(ncclInvalidArgument, "no place for the communicator");
  *made =
      new ncclComm{.number = next_number++, .name = name_in(config), .size = size, .rank = rank};
  return ncclSuccess;
}

ncclResult_t make_checked(ncclComm_t* made, int size, int rank, const ncclConfig_t* config) {
  if (size < 1) return refuse(ncclInvalidArgument, "a communicator of " + std::to_string(size));
  if (rank < 0 || rank >= size) {
    return refuse(ncclInvalidArgument,
                  "rank " + std::to_string(rank) + " of " + std::to_string(size));
  }
  return make(made, size, rank, config);
}

ncclResult_t check(ncclComm_t communicator) {
  if (is_valid(communicator)) return ncclSuccess;
  return refuse(ncclInvalidArgument, "not a communicator, or one that was destroyed");
}

}  // namespace

ncclResult_t refuse(ncclResult_t code, std::string why) {
  refusal = std::move(why);
  return code;
}

const char* last_refusal() { return refusal.c_str(); }

bool is_valid(ncclComm_t communicator) {
  return communicator != nullptr && communicator->magic == ncclComm::kMagic;
}

int size_of(ncclComm& communicator) {
  if (communicator.size == 0) communicator.size = ask_group_size();
  return communicator.size;
}

}  // namespace nccl

using nccl::check;
using nccl::refuse;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return refuse(ncclInvalidArgument, "no place for the id");
  std::memset(id, 7, sizeof *id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* made, int size, ncclUniqueId, int rank) {
  return nccl::make_checked(made, size, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* made, int size, ncclUniqueId, int rank, ncclConfig_t* config) {
  return nccl::make_checked(made, size, rank, config);
}

ncclResult_t ncclCommInitRankScalable(
    ncclComm_t* made, int size, int rank, int ids, ncclUniqueId*, ncclConfig_t* config) {
  if (ids < 1 || ids > size) {
    return refuse(ncclInvalidArgument, std::to_string(ids) + " unique ids");
  }
  return nccl::make_checked(made, size, rank, config);
}

// All of one process.
ncclResult_t ncclCommInitAll(ncclComm_t* made, int devices, const int*) {
  for (int rank = 0; rank < devices; ++rank) {
    const ncclResult_t result = nccl::make_checked(made + rank, devices, rank, nullptr);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

// Which ranks have the same color, only they know: the size stays open until somebody tells. The
// key is the caller's rank in the part, as torch gives it.
ncclResult_t ncclCommSplit(
    ncclComm_t whole, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  if (check(whole) != ncclSuccess) return ncclInvalidArgument;
  if (color == NCCL_SPLIT_NOCOLOR) {
    *made = nullptr;
    return ncclSuccess;
  }
  if (color < 0) return refuse(ncclInvalidArgument, "color " + std::to_string(color));
  return nccl::make(made, 0, key, config);
}

// Ranks close up: those that are excluded below this one move it down.
ncclResult_t ncclCommShrink(ncclComm_t whole,
                            int* excluded,  // NOLINT: as NCCL declares it
                            int count,
                            ncclComm_t* made,
                            ncclConfig_t* config,
                            int) {
  if (check(whole) != ncclSuccess) return ncclInvalidArgument;
  int rank = whole->rank;
  for (int i = 0; i < count; ++i) {
    if (excluded[i] == whole->rank) return refuse(ncclInvalidArgument, "this rank is excluded");
    if (excluded[i] < whole->rank) --rank;
  }
  return nccl::make_checked(made, nccl::size_of(*whole) - count, rank, config);
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  if (check(communicator) != ncclSuccess) return ncclInvalidArgument;
  communicator->is_finalized = true;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (communicator == nullptr) return ncclSuccess;
  if (check(communicator) != ncclSuccess) return ncclInvalidArgument;
  communicator->magic = 0;
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) { return ncclCommDestroy(communicator); }

ncclResult_t ncclCommCount(ncclComm_t communicator, int* size) {
  if (check(communicator) != ncclSuccess) return ncclInvalidArgument;
  if (nccl::size_of(*communicator) == 0) {
    return refuse(ncclInvalidUsage, "nobody knows how many ranks share the color of a split");
  }
  *size = communicator->size;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t communicator, int* rank) {
  if (check(communicator) != ncclSuccess) return ncclInvalidArgument;
  *rank = communicator->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t communicator, int* device) {
  if (check(communicator) != ncclSuccess) return ncclInvalidArgument;
  return nccl::cuda().get_device(device) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  if (check(communicator) != ncclSuccess) return ncclInvalidArgument;
  *error = ncclSuccess;
  return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t) { return nccl::last_refusal(); }
}
