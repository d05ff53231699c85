// A world of real ranks: how they join, notice that one of them is gone, and leave.
//
// Ranks meet in a TCPStore that rank 0 (or torchrun's agent) keeps. A rank joins once, says what it
// is about to run, and waits until all others have joined and say the same. From then on a thread
// of each rank gives a sign of life every second and checks whether a failure was reported. The
// first failure ends every rank with the same message.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "estimator/base/errors.h"
#include "estimator/base/json.h"
#include "sim/verify/ranks/world_store.h"
#include "sim/verify/ranks/world_watch.h"

namespace sim {

struct WorldTimeouts {
  std::chrono::seconds join{60};         ///< until every rank has joined
  std::chrono::seconds collective{300};  ///< for one collective, and for the results of all ranks
};

/// Which rank may have caused a failure: a rank whose peer is gone fails too.
enum class Blame { kThisRank, kPerhapsAPeer };

class World {
 public:
  /// Joins the world. `about` (plan, versions) must be equal on all ranks. Throws UserError (this
  /// machine lacks something) when the store cannot be reached or this rank has already joined.
  /// Ends the process as fail() does when a rank does not join or has another `about`.
  World(const WorldSeat& seat, const WorldTimeouts& timeouts, const estimator::Json& about);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  void set(const std::string& key, const std::string& value);
  /// Waits for the key. Calls fail() when rank `from` does not set it in time.
  std::string get(const std::string& key, int64_t from);

  /// Reports the failure to all ranks. They and this process print it and end with exit code 3. If
  /// a peer may be the cause, it first waits for a better report.
  [[noreturn]] void fail(const estimator::Problem& problem, Blame blame);

  /// Leaves the world. Rank 0 waits until all others have left, since it may keep the store.
  void leave();

 private:
  void check_all_are_about(const estimator::Json& about);
  std::optional<std::string> wait_for(const std::string& key, std::chrono::milliseconds timeout);

  const WorldSeat seat_;
  const WorldTimeouts timeouts_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<WorldWatch> watch_;
};

/// Reports a failure to a world in which this process has no rank, but its child had one.
void report_failure(const WorldSeat& seat, const estimator::Problem& problem);

}  // namespace sim
