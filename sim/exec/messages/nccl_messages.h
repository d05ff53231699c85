// What a program's calls of NCCL say to the other ranks, and what they wait for (peer_messages.h).
//
// Only numbers that can decide what a program does are exchanged: integers up to
// kLargestControlBytes. Weights, activations and gradients are not: no host knows them.
//
// What the members of a gather hold is heard of those that are asked for
// (PeerMessages::is_asked); for others this rank's own copy stays. Of each collective whose answer
// is such a copy and is known it is noted (absent_answers.h).
//
// An all-to-all with splits and a gather at one rank are made of messages, and an all-gather into a
// list of broadcasts, one from each member. As in every collective, the other members are taken to
// hold what this rank holds: each sends what this rank sends to itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "sim/exec/messages/absent_answers.h"
#include "sim/exec/messages/collective_log.h"
#include "sim/exec/messages/peer_messages.h"
#include "sim/exec/program/virtual_gpu_control.h"
#include "sim/exec/values/written_memory.h"

namespace sim {

/// Thread-safe.
class NcclMessages {
 public:
  /// Called with what cannot be answered.
  using Refuse = std::function<void(const std::string& what)>;

  /// Says what the call sends, or notes what it waits for. Must be called in the thread of the
  /// call, before its values are written.
  void called(const onerank_nccl_call& call, const VirtualGpu& gpu);

  /// Waits for what was noted, and writes it. A program may ask for a message before it sends what
  /// the sender waits for; so this is called before the first operator that follows the calls.
  void settle(const VirtualGpu& gpu, const Refuse& refuse) {
    if (is_waiting_) settle_all(gpu, refuse);
  }

  /// Whether the call reads what was noted: as on a GPU it then follows what it waits for.
  bool reads_awaited(const onerank_nccl_call& call) const {
    return is_waiting_ && reads_any_awaited(call);
  }

  /// A kernel wrote to this memory, or it was given to somebody else: no message is missing there
  /// any more.
  void written(const void* address, uint64_t bytes) {
    if (is_missing_) forget_missing(address, bytes);
  }

  /// The message of an absent rank that should lie in this memory, where nobody knows it; or "".
  std::string missing_at(const void* address, uint64_t bytes) const;

 private:
  struct Awaited {
    MessageName name;
    int64_t own_rank = 0;
    void* address = nullptr;
    uint64_t bytes = 0;
    std::string text;  // for the user
    /// Of an all-gather: what lies at the address if no message comes. A message may be shorter or
    /// longer: objects are padded to the longest of those that their rank knows.
    std::optional<AbsentAnswer> copy;
  };
  /// A message of a collective that is made of them. It is taken to be this rank's own, if that is
  /// as long.
  struct Exchanged {
    uint64_t group = 0;  // of NCCL's calls
    void* address = nullptr;
    uint64_t bytes = 0;
    std::optional<Awaited> otherwise;
  };
  /// What this rank gives itself in such a collective.
  struct OwnChunk {
    uint64_t size = 0;
    int known = 0;           // as peek() says
    std::string bytes = {};  // as many from its beginning as are known
  };

  void gather(const onerank_nccl_call& call, const CallingGroup& group, const VirtualGpu& gpu);
  /// One of the broadcasts, one from each member, of which torch makes an all-gather into a list.
  void gather_from(const onerank_nccl_call& call, const CallingGroup& group, const VirtualGpu& gpu);
  /// One of the messages to the rank that gathers.
  void gather_at_root(const onerank_nccl_call& call,
                      const CallingGroup& group,
                      const VirtualGpu& gpu);
  void say_own(const onerank_nccl_call& call,
               const CallingGroup& group,
               const MemoryRange& given,
               const VirtualGpu& gpu);
  static Awaited gathered_from(const onerank_nccl_call& call,
                               const CallingGroup& group,
                               int64_t rank,
                               void* address,
                               uint64_t bytes);
  void await_copy(const onerank_nccl_call& call,
                  const CallingGroup& group,
                  int64_t rank,
                  void* address,
                  uint64_t bytes);
  void exchange(const onerank_nccl_call& call,
                const CallingGroup& group,
                bool is_to_itself,
                const VirtualGpu& gpu);
  void keep_own(uint64_t group, const MemoryRange& given, const VirtualGpu& gpu);
  bool keeps_own(uint64_t group) const;
  /// Returns those that are awaited otherwise.
  static std::vector<Awaited> settle_exchanges(const std::vector<Exchanged>& exchanged,
                                               const std::map<uint64_t, OwnChunk>& own_chunks,
                                               const VirtualGpu& gpu);
  void await(std::vector<Awaited> awaited);

  static void settle_message(const Awaited& awaited,
                             const PeerMessage& message,
                             const VirtualGpu& gpu);

  void forget_missing(const void* address, uint64_t bytes);
  bool reads_any_awaited(const onerank_nccl_call& call) const;
  void settle_all(const VirtualGpu& gpu, const Refuse& refuse);

  std::atomic<bool> is_waiting_ = false;
  std::atomic<bool> is_missing_ = false;
  mutable std::mutex mutex_;
  std::vector<Awaited> awaited_;
  std::vector<Exchanged> exchanged_;
  std::map<uint64_t, OwnChunk> own_chunks_;  // by group of NCCL's calls
  std::map<uint64_t, Awaited> missing_;      // by address
};

}  // namespace sim
