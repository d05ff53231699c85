// What a program asked of NCCL, counted.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "comm_stub/nccl/nccl_control.h"
#include "estimator/profile/program_record.h"

namespace sim {

/// Size of the process group whose collective this thread is in, 0 when it is in none.
int calling_group_size();

/// Thread-safe.
class CollectiveLog {
 public:
  /// Counts a call, by the name that its process group has. `in_iteration`: in the recorded one.
  void add(const onerank_nccl_call& call, bool in_iteration);

  std::vector<estimator::CommunicatorRecord> records() const;

 private:
  struct Key {
    int communicator;
    std::string kind;
    std::string dtype;
    int64_t bytes;
    int peer;
    auto operator<=>(const Key&) const = default;
  };
  struct Count {
    int64_t total = 0;
    int64_t in_iteration = 0;
  };

  mutable std::mutex mutex_;
  std::map<int, estimator::CommunicatorRecord> communicators_;
  std::map<Key, Count> calls_;
};

}  // namespace sim
