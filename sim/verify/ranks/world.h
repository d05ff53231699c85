// A world of real ranks: how they meet, notice that one of them is gone, and part.
//
// Ranks meet in a TCPStore that rank 0 keeps (or torchrun's agent). A rank comes once, says what it
// is about to run, and waits until all others have come and say the same. From then on a thread of
// each rank gives a sign of life every second and looks whether somebody reported a failure: the
// first failure ends every rank, with one message.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "estimator/base/fields.h"
#include "sim/verify/ranks/world_store.h"
#include "sim/verify/ranks/world_watch.h"

namespace sim {

struct WorldTimeouts {
  std::chrono::seconds join{60};         ///< until every rank has come
  std::chrono::seconds collective{300};  ///< for one collective, and for the results of all ranks
};

/// Whose fault a failure may be: a rank whose peer is gone fails too.
enum class Blame { kThisRank, kPerhapsAPeer };

class World {
 public:
  /// Joins. `about` (plan, versions) must be equal on all ranks. Throws UserError (this machine
  /// lacks something) when there is no way to the store, or this rank has come already. Otherwise
  /// ends as fail() does when a rank does not come or is about to do something else.
  World(const WorldSeat& seat, const WorldTimeouts& timeouts, const estimator::Json& about);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  void set(const std::string& key, const std::string& value);
  /// Waits for the key; fail() when rank `from` does not set it in time.
  std::string get(const std::string& key, int64_t from);

  /// Reports the failure to all ranks, which all print it and end with exit code 3; so does this
  /// process. Where a peer may be to blame it first waits for a better report.
  [[noreturn]] void fail(const estimator::Problem& problem, Blame blame);

  /// Parts: rank 0 stays until all others have left, as it may keep the store.
  void leave();

 private:
  void check_all_are_about(const estimator::Json& about);
  std::optional<std::string> wait_for(const std::string& key, std::chrono::milliseconds timeout);

  const WorldSeat seat_;
  const WorldTimeouts timeouts_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<WorldWatch> watch_;
};

/// Reports a failure to a world that this process has no rank in (its child had).
void report_failure(const WorldSeat& seat, const estimator::Problem& problem);

}  // namespace sim
