// The life of one real rank of a verification.
#pragma once

#include <functional>
#include <string>

#include "estimator/plan/plan.h"
#include "sim/verify/ranks/gloo_groups.h"
#include "sim/verify/ranks/world.h"

namespace sim {

/// For tests that break a world on purpose.
struct WorldHooks {
  /// Changes the groups of a rank before its shard gets them.
  std::function<void(int64_t rank, BackendMap& groups)> change_groups = {};
  /// What it says its version is; empty: the truth.
  std::string version = {};
};

struct RealRankJob {
  WorldSeat seat;
  WorldTimeouts timeouts;
  std::string output_folder;  ///< rank 0 writes verification.json there
  WorldHooks hooks;
};

inline constexpr const char* kVerificationFile = "verification.json";

/// Joins the world, runs the rank with the stub and with real groups (rank 0 the whole model too),
/// compares, and hands what it found to rank 0, which writes it down. Returns the exit code of all
/// ranks: kDone, or kDifference. What goes wrong on the way ends the process with exit code 3 on
/// every rank.
estimator::ExitCode be_real_rank(const estimator::Plan& plan, const RealRankJob& job);

}  // namespace sim
