// The absent ranks of a group: a c10d::Backend named "stub" that checks each call as NCCL would,
// records it, and answers at once.
//
// Checks. What ProcessGroupNCCL of torch 2.11 refuses is refused, for tensors on any device:
// several tensors where one is due, mixed dtypes or devices, dtypes that NCCL has not, sparse or
// non-contiguous tensors, sizes that do not fit the group, ranks out of range. (CPU tensors count
// as dense CUDA tensors here.) What NCCL has not at all - bitwise reductions, allgather_coalesced,
// recvAnysource - is answered for CPU tensors, whose real backend would be Gloo, and refused
// otherwise. Stricter than NCCL: complex tensors (give them as at::view_as_real()), reductions of
// float8 and a message to oneself outside a batch are refused. Every refusal is a c10::ValueError
// whose message opens with the call, the group and its size.
//
// Records. One estimator::CollectiveCall for each collective, sized as collective_call.h says;
// bytes of an all-to-all are those that this rank sends. A coalesced call is one record for each of
// its tensors, as NCCL runs one collective for each inside one launch. A send or recv is always
// asynchronous: c10d gives it no asyncOp. The source of a recvAnysource is taken to be the first
// other member.
//
// Answers. Every absent member is taken to hold what this rank holds, so a call yields what real
// ranks with equal tensors would get:
//
//     all-reduce           x op x ... op x, group size times: SUM is x * size, rounded once
//     reduce               the same at the root; unchanged elsewhere
//     reduce-scatter       the same of this rank's chunk
//     all-gather           this rank's shard in every slot
//     gather               the same at the root
//     all-to-all           in every slot the chunk that this rank has for itself; if a slot is
//                          smaller, what fits of it; if larger, zeros after it
//     broadcast, scatter   unchanged, or this rank's entry, at the root; zeros elsewhere
//     send, recv           unchanged; zeros
//
// Zeros stand for what a root or a sender would have sent: nobody knows it here.
//
// Memory. As ProcessGroupNCCL of torch 2.11, watched while it allocated: the list forms of
// all-gather and reduce-scatter allocate one buffer of the gathered size if all entries have one
// shape, barrier allocates one float (on the device that the call or setBoundDeviceId() names; none
// named: nothing), nothing else allocates. An asynchronous call holds its inputs until wait(); its
// outputs, the buffer of an all-gather, the list of a scatter and the float of a barrier as long as
// its Work lives. A synchronous one holds its outputs only. The collectives of a batch are held
// until wait() of endCoalescing()'s Work, its messages are not held.
//
// The Work is complete when the call returns: wait() is true at once, getFuture() is complete and
// holds the outputs. Like ProcessGroupNCCL, a backend takes one call at a time.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <functional>

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
  /// False for tensors without memory: outputs are left as they are.
  bool write_values = true;

  /// Called with each tensor that a call read, wrote or allocated, before the call returns.
  std::function<void(const at::Tensor&)> on_tensor = {};

  /// Called with true just before the stub writes values and with false just after, so that who
  /// measures time on a real device can mark its stream and take the stub's own kernels off.
  /// They are never seen by at::RecordFunction.
  std::function<void(bool writing)> on_writing;
};

/// The stub of `group` as its member `member_index` (0 <= member_index < group.size()) sees it.
/// Costs the same for a group of any size up to INT_MAX. Throws std::logic_error when there is no
/// such member, or more of them than c10d can number.
c10::intrusive_ptr<c10d::Backend> make_stub_backend(const estimator::RankGroup& group,
                                                    int64_t member_index,
                                                    CallSink sink,
                                                    StubOptions options = {});

}  // namespace comm_stub
