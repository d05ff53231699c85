// What a program's calls of NCCL say to the other ranks, and what they wait for (peer_messages.h).
//
// Only numbers that can decide what a program does are exchanged: integers up to
// kLargestControlBytes, and other types up to a few numbers. Weights, activations and gradients are
// not: no host knows them.
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
#include "sim/exec/peer_messages.h"
#include "sim/exec/virtual_gpu_control.h"

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

  /// The message of an absent rank that should lie in this memory, where nobody knows it; or "".
  std::string missing_at(const void* address, uint64_t bytes) const;

 private:
  struct Awaited {
    MessageName name;
    int64_t own_rank = 0;
    void* address = nullptr;
    uint64_t bytes = 0;
    std::string text;  // for the user
  };

  void take_for_own(const std::string& what);
  void settle_all(const VirtualGpu& gpu, const Refuse& refuse);

  std::atomic<bool> is_waiting_ = false;
  std::atomic<int> told_ = 0;
  mutable std::mutex mutex_;
  std::vector<Awaited> awaited_;
  std::map<uint64_t, Awaited> missing_;  // by address
};

}  // namespace sim
