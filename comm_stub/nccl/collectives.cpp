#include <algorithm>
#include <string>
#include <vector>

#include "comm_stub/nccl/calls.h"
#include "comm_stub/nccl/nccl_values.h"
#include "comm_stub/nccl/own_operations.h"

/// The collectives and messages. Every absent member is taken to hold what this rank holds, so each
/// call leaves what real ranks with equal buffers would get. What a root or a sender would have
/// sent is therefore what the receiver's buffer holds already.
namespace nccl {
namespace {

constexpr int kNobody = -1;

/// A call as it came in, before its checks.
struct Request {
  const char* function;
  const char* kind;  // as in estimator::CollectiveKind
  ncclComm_t communicator;
  ncclDataType_t type;
  size_t elements;  // of one rank
  cudaStream_t stream;
  std::vector<const void*> buffers;
  bool size_is_of_all_ranks = false;  // the recorded bytes are those of all ranks
  int member = kNobody;               // root or peer
  ncclRedOp_t operation = ncclSum;
};

/// Why the call is refused, or "".
std::string objection(const Request& request) {
  if (!is_valid(request.communicator)) return "not a communicator, or one that was destroyed";
  if (request.communicator->is_finalized) return "the communicator is finalized";
  if (find_type(request.type) == nullptr) return "no data type " + std::to_string(request.type);
  const bool has_operation = request.operation >= ncclNumOps
                                 ? find_operation(request.operation).has_value()
                                 : request.operation >= 0;
  if (!has_operation) return "no operation " + std::to_string(request.operation);
  const int ranks = size_of(*request.communicator);
  if (ranks == 0) return "the size of this split communicator is not known";
  if (request.member < kNobody || request.member >= ranks) {
    return "no member " + std::to_string(request.member) + " of " + std::to_string(ranks);
  }
  const bool has_null = std::count(request.buffers.begin(), request.buffers.end(), nullptr) > 0;
  return has_null && request.elements > 0 ? "a null buffer" : "";
}

/// Checks, records and answers: `answer` is given a buffer of the first of the call's addresses,
/// and the number of ranks.
template <class Answer>
ncclResult_t serve(const Request& request, const Answer& answer) {
  const std::string why = objection(request);
  if (!why.empty()) {
    return refuse(ncclInvalidArgument, std::string(request.function) + ": " + why);
  }
  const DataType& type = *find_type(request.type);
  const int ranks = request.communicator->size;
  const uint64_t bytes = request.elements * type.bytes;
  record({.kind = request.kind,
          .communicator = *request.communicator,
          .type = type,
          .bytes = request.size_is_of_all_ranks ? bytes * ranks : bytes,
          .peer = request.member,
          .stream = request.stream,
          .buffers = request.buffers});
  const ncclResult_t result =
      answer(Buffer{request.buffers.front(), request.elements, type}, ranks);
  answered();
  return result;
}

template <class Pointer>
Pointer slot(Pointer buffer, int index, size_t bytes) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(buffer) + static_cast<size_t>(index) * bytes;
}

ncclResult_t leave(const Buffer&, int) { return ncclSuccess; }

}  // namespace
}  // namespace nccl

using nccl::Buffer;
using nccl::serve;
using nccl::slot;

extern "C" {

ncclResult_t ncclAllReduce(const void* send,
                           void* receive,
                           size_t count,
                           ncclDataType_t type,
                           ncclRedOp_t operation,
                           ncclComm_t communicator,
                           cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "all_reduce",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {send, receive},
                .operation = operation},
               [&](const Buffer& own, int ranks) {
                 return nccl::reduce(receive, own, operation, ranks, stream);
               });
}

ncclResult_t ncclReduce(const void* send,
                        void* receive,
                        size_t count,
                        ncclDataType_t type,
                        ncclRedOp_t operation,
                        int root,
                        ncclComm_t communicator,
                        cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "reduce",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {send},
                .member = root,
                .operation = operation},
               [&](const Buffer& own, int ranks) {
                 if (communicator->rank != root) return ncclSuccess;
                 return nccl::reduce(receive, own, operation, ranks, stream);
               });
}

ncclResult_t ncclReduceScatter(const void* send,
                               void* receive,
                               size_t count,
                               ncclDataType_t type,
                               ncclRedOp_t operation,
                               ncclComm_t communicator,
                               cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "reduce_scatter",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {send, receive},
                .size_is_of_all_ranks = true,
                .operation = operation},
               [&](const Buffer& all, int ranks) {
                 Buffer own = all;
                 own.address = slot(send, communicator->rank, all.bytes());
                 return nccl::reduce(receive, own, operation, ranks, stream);
               });
}

ncclResult_t ncclAllGather(const void* send,
                           void* receive,
                           size_t count,
                           ncclDataType_t type,
                           ncclComm_t communicator,
                           cudaStream_t stream) {
  return serve(
      {.function = __func__,
       .kind = "all_gather",
       .communicator = communicator,
       .type = type,
       .elements = count,
       .stream = stream,
       .buffers = {send, receive},
       .size_is_of_all_ranks = true},
      [&](const Buffer& own, int ranks) { return nccl::spread(receive, own, ranks, stream); });
}

ncclResult_t ncclAlltoAll(const void* send,
                          void* receive,
                          size_t count,
                          ncclDataType_t type,
                          ncclComm_t communicator,
                          cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "all_to_all",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {send, receive},
                .size_is_of_all_ranks = true},
               [&](const Buffer& all, int ranks) {
                 Buffer own = all;
                 own.address = slot(send, communicator->rank, all.bytes());
                 return nccl::spread(receive, own, ranks, stream);
               });
}

ncclResult_t ncclBroadcast(const void* send,
                           void* receive,
                           size_t count,
                           ncclDataType_t type,
                           int root,
                           ncclComm_t communicator,
                           cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "broadcast",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {send, receive},
                .member = root},
               [&](const Buffer& own, int) {
                 if (communicator->rank != root) return ncclSuccess;
                 return nccl::copy(receive, own, stream);
               });
}

ncclResult_t ncclBcast(void* buffer,
                       size_t count,
                       ncclDataType_t type,
                       int root,
                       ncclComm_t communicator,
                       cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}

ncclResult_t ncclGather(const void* send,
                        void* receive,
                        size_t count,
                        ncclDataType_t type,
                        int root,
                        ncclComm_t communicator,
                        cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "gather",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {send},
                .size_is_of_all_ranks = true,
                .member = root},
               [&](const Buffer& own, int ranks) {
                 if (communicator->rank != root) return ncclSuccess;
                 return nccl::spread(receive, own, ranks, stream);
               });
}

ncclResult_t ncclScatter(const void* send,
                         void* receive,
                         size_t count,
                         ncclDataType_t type,
                         int root,
                         ncclComm_t communicator,
                         cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "scatter",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {receive},
                .size_is_of_all_ranks = true,
                .member = root},
               [&](const Buffer& all, int) {
                 if (communicator->rank != root) return ncclSuccess;
                 Buffer own = all;
                 own.address = slot(send, root, all.bytes());
                 return nccl::copy(receive, own, stream);
               });
}

ncclResult_t ncclSend(const void* send,
                      size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t communicator,
                      cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "send",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {send},
                .member = peer},
               nccl::leave);
}

ncclResult_t ncclRecv(void* receive,
                      size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t communicator,
                      cudaStream_t stream) {
  return serve({.function = __func__,
                .kind = "recv",
                .communicator = communicator,
                .type = type,
                .elements = count,
                .stream = stream,
                .buffers = {receive},
                .member = peer},
               [&](const Buffer& buffer, int) { return nccl::receive(receive, buffer, stream); });
}
}
