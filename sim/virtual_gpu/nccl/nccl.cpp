#include <cstring>
#include <optional>

/// Communicators of NCCL: each process makes its own, without asking the others. Collectives do
/// nothing; the memory that NCCL takes for itself is not counted.

enum ncclResult_t { ncclSuccess = 0, ncclInvalidArgument = 4, ncclInvalidUsage = 5 };

struct ncclUniqueId {
  char internal[128];
};

struct ncclComm {
  std::optional<int> ranks;  // not known of a part of a communicator: it depends on other ranks
  std::optional<int> rank;
};
using ncclComm_t = ncclComm*;

namespace {

constexpr int kVersion = 22809;  // 2.28.9

ncclResult_t ask(const std::optional<int>& known, int* value) {
  if (!known) return ncclInvalidUsage;
  *value = *known;
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = kVersion;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "refused by the virtual GPU";
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof *id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId, int rank) {
  *communicator = new ncclComm{ranks, rank};
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank, void*) {
  return ncclCommInitRank(communicator, ranks, id, rank);
}

ncclResult_t ncclCommInitRankScalable(
    ncclComm_t* communicator, int ranks, int rank, int, ncclUniqueId*, void*) {
  return ncclCommInitRank(communicator, ranks, ncclUniqueId{}, rank);
}

ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t* part, void*) {
  *part = new ncclComm{};
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) { return ncclCommDestroy(communicator); }

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommCount(ncclComm_t communicator, int* ranks) {
  return ask(communicator->ranks, ranks);
}

ncclResult_t ncclCommUserRank(ncclComm_t communicator, int* rank) {
  return ask(communicator->rank, rank);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
}
