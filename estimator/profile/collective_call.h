// One collective as a rank sees it. The stub records it, the estimator computes its time, and
// `onerank verify` compares it with the call of a real rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"
#include "estimator/plan/parallel_layout.h"

namespace estimator {

enum class CollectiveKind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSend,
  kRecv,
  kBarrier,
};
constexpr std::array<EnumName<CollectiveKind>, 11> enum_names(CollectiveKind) {
  return {{{CollectiveKind::kAllReduce, "all_reduce"},
           {CollectiveKind::kAllGather, "all_gather"},
           {CollectiveKind::kReduceScatter, "reduce_scatter"},
           {CollectiveKind::kAllToAll, "all_to_all"},
           {CollectiveKind::kBroadcast, "broadcast"},
           {CollectiveKind::kReduce, "reduce"},
           {CollectiveKind::kGather, "gather"},
           {CollectiveKind::kScatter, "scatter"},
           {CollectiveKind::kSend, "send"},
           {CollectiveKind::kRecv, "recv"},
           {CollectiveKind::kBarrier, "barrier"}}};
}

/// `bytes` is the size as nccl-tests counts it: the whole buffer of one rank for all-reduce,
/// broadcast, reduce and all-to-all; the gathered size (group size x shard) for all-gather,
/// reduce-scatter, gather and scatter; the message for send and recv; 0 for barrier.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kBarrier;
  GroupKind group = GroupKind::kWorld;
  int64_t group_size = 1;
  std::string dtype;  ///< c10's name: "BFloat16", "Float", "Long", ...
  int64_t bytes = 0;
  int64_t peer = -1;  ///< member index for send, recv and rooted calls, else -1
  bool asynchronous = false;
  bool operator==(const CollectiveCall&) const = default;
};

constexpr bool is_message(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

/// Whether it is a message of the context ranks' ring, which passes keys and values (and their
/// gradients) on. Context ranks send each other no other messages.
inline bool is_ring_message(const CollectiveCall& call) {
  return call.group == GroupKind::kContext && is_message(call.kind);
}

}  // namespace estimator
