// The thread of a rank that watches the other ranks.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "sim/verify/ranks/world_store.h"

namespace sim {

/// A rank that gives no sign of life for this time counts as gone.
inline constexpr std::chrono::seconds kLongestSilence{10};

/// While this object lives, the rank gives a sign of life every second. As soon as a failure is
/// posted or the store is gone, the process prints the cause and ends with exit code 3. Rank 0
/// posts a failure when a rank that has joined falls silent.
class WorldWatch {
 public:
  WorldWatch(const WorldSeat& seat, std::chrono::seconds timeout);
  ~WorldWatch();
  WorldWatch(const WorldWatch&) = delete;
  WorldWatch& operator=(const WorldWatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  /// The last sign of life of a rank.
  struct Sign {
    std::string value;
    Clock::time_point seen;
  };

  void watch();
  void look_once();
  void give_sign();
  void look_for_silence();

  const WorldSeat seat_;
  c10::intrusive_ptr<c10d::Store> store_;  // its own: a client does one thing at a time
  std::map<int64_t, Sign> signs_;
  int64_t given_ = 0;
  Clock::time_point last_given_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace sim
