// Counts the calls of a program to NCCL.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/profile/program_record.h"

namespace sim {

/// The process group whose collective this thread is running, or the two of its members that send
/// and receive over a communicator of their own.
struct CallingGroup {
  std::string name;            ///< the same in every rank
  std::string description;     ///< for the user
  std::string collective;      ///< torch's name of what it runs: "all_to_allv"
  std::vector<int64_t> ranks;  ///< of the world
};
std::optional<CallingGroup> calling_group(const onerank_nccl_call& call);

/// torch.distributed begins to make a group. torch's process group for NCCL from 2.15 on tells its
/// name alone; the rest of calling_group() is then what was told here. Thread-safe.
void group_begins(const std::string& name, std::string description, std::vector<int64_t> ranks);
/// The group that this thread began is made.
void group_is_made();

/// Size of the process group whose collective this thread is running, else of the one that it is
/// making; 0 if there is none.
int calling_group_size();

/// Of a kind of collective, as in estimator::CollectiveKind.
bool is_reduction(std::string_view kind);

/// Thread-safe.
class CollectiveLog {
 public:
  /// Calls that are alike.
  struct Key {
    int communicator;
    std::string kind;
    std::string dtype;
    int64_t bytes;
    int peer;
    auto operator<=>(const Key&) const = default;
  };
  using Counts = std::map<Key, int64_t>;

  /// What the call counts as. From now on its communicator has the name of the process group that
  /// calls here.
  Key told(const onerank_nccl_call& call);
  /// Counts a call. `in_iteration` says that it belongs to the recorded iteration.
  void add(const Key& call, bool in_iteration);

  /// The calls of the recorded iteration until now.
  Counts iteration() const;
  /// The iteration whose calls were counted is not the recorded one.
  void forget_iteration();

  /// Of all calls, those of `iteration` counted apart.
  std::vector<estimator::CommunicatorRecord> records(const Counts& iteration) const;
  /// Without its calls.
  estimator::CommunicatorRecord communicator(int number) const;
  /// Where the communicator with this number stands among the records.
  int64_t place_of(int64_t communicator) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, estimator::CommunicatorRecord> communicators_;
  Counts all_;
  Counts iteration_;
};

}  // namespace sim
