// Stands for the absent ranks of a group: a c10d::Backend named "stub" that checks each call as
// NCCL would, records it, and answers at once.
//
// Checks. The stub refuses what ProcessGroupNCCL of torch 2.11 refuses, for tensors on any device:
// several tensors where one is allowed, mixed dtypes or devices, dtypes that NCCL does not have,
// sparse or non-contiguous tensors, sizes that do not fit the group, ranks out of range. (CPU
// tensors count as dense CUDA tensors here.) Calls that NCCL does not have at all (bitwise
// reductions, allgather_coalesced, recvAnysource) are answered for CPU tensors, whose real backend
// would be Gloo, and refused otherwise. The stub is stricter than NCCL in three cases: it refuses
// complex tensors (pass them as at::view_as_real()), reductions of float8, and a message to oneself
// outside a batch. Every refusal is a c10::ValueError whose message begins with the call, the group
// and its size.
//
// Records. There is one estimator::CollectiveCall for each collective, with the size that
// collective_call.h defines; the bytes of an all-to-all are those that this rank sends. A coalesced
// call gives one record for each of its tensors, since NCCL runs one collective for each tensor
// inside one launch. A send or recv is always asynchronous, since c10d gives it no asyncOp. The
// source of a recvAnysource is taken to be the first other member.
//
// Answers. Every absent member is assumed to hold what this rank holds, so the result of a call is
// what real ranks with equal tensors would get:
//
//     all-reduce           x op x ... op x, with x group size times: SUM is x * size, rounded once
//     reduce               the same at the root; unchanged elsewhere
//     reduce-scatter       the same for this rank's chunk
//     all-gather           this rank's shard in every slot
//     gather               the same at the root
//     all-to-all           in every slot the chunk that this rank has for itself: cut off if the
//                          slot is smaller, followed by zeros if it is larger
//     broadcast, scatter   unchanged, or this rank's entry, at the root; zeros elsewhere
//     send, recv           unchanged; zeros
//
// Zeros stand for what an absent root or sender would have sent, which is not known here.
//
// Memory. Allocations are those of ProcessGroupNCCL of torch 2.11, as observed while it ran. The
// list forms of all-gather and reduce-scatter allocate one buffer of the gathered size if all
// entries have the same shape. A barrier allocates one float on the device that the call or
// setBoundDeviceId() names, and nothing if none is named. Nothing else allocates. An asynchronous
// call holds its inputs until wait(). It holds its outputs, the buffer of an all-gather, the list
// of a scatter and the float of a barrier as long as its Work lives. A synchronous call holds only
// its outputs. The tensors of collectives in a batch are held until wait() of endCoalescing()'s
// Work; those of messages are not held.
//
// The Work is complete when the call returns: wait() returns true at once, and getFuture() is
// complete and holds the outputs. Like ProcessGroupNCCL, a backend accepts one call at a time.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "estimator/profile/collective_call.h"

namespace at {
class Tensor;
}
namespace c10d {
class Backend;  // its header takes 7 s to compile
}

namespace comm_stub {

/// Receives each call after its checks, on the calling thread, before the call returns.
using CallSink = std::function<void(const estimator::CollectiveCall&)>;

struct StubOptions {
  /// False for tensors without memory: then outputs are left unchanged.
  bool write_values = true;

  /// Called with each tensor that a call read, wrote or allocated, before the call returns.
  std::function<void(const at::Tensor&)> on_tensor = {};

  /// Called when an asynchronous call of the group has begun. What it returns is called when
  /// somebody waits for that call. May be empty, and may return an empty function.
  std::function<std::function<void()>(estimator::GroupKind)> on_begun = {};

  /// Called with true just before the stub writes values and with false just after. Code that
  /// measures time on a real device can so subtract the time of the stub's own kernels.
  /// at::RecordFunction never sees these kernels.
  std::function<void(bool writing)> on_writing;
};

/// The stub of `group` for its member `member_index` (0 <= member_index < group.size()). It costs
/// the same for a group of any size up to INT_MAX. Throws std::logic_error when there is no such
/// member, or when the group has more members than c10d can number.
c10::intrusive_ptr<c10d::Backend> make_stub_backend(const estimator::RankGroup& group,
                                                    int64_t member_index,
                                                    CallSink sink,
                                                    StubOptions options = {});

using StubGroups = std::map<estimator::GroupKind, c10::intrusive_ptr<c10d::Backend>>;

/// Makes a stub for the group of each of `kinds`. A kind is left out when its group has one member
/// (it needs no communication) or when `rank` is not in it (kEmbedding on a middle stage).
StubGroups make_stub_groups(const estimator::ParallelLayout& layout,
                            int64_t rank,
                            const std::vector<estimator::GroupKind>& kinds,
                            const CallSink& sink,
                            const StubOptions& options = {});

}  // namespace comm_stub
