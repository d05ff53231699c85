// One real rank of a verification, from joining the world to the end.
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
  /// The version that the rank reports; empty means its real version.
  std::string version = {};
};

struct RealRankJob {
  WorldSeat seat;
  WorldTimeouts timeouts;
  std::string output_folder;  ///< rank 0 writes verification.json there
  WorldHooks hooks;
};

inline constexpr const char* kVerificationFile = "verification.json";

/// Joins the world, runs the rank with the stub and with real groups (rank 0 also runs the whole
/// model), compares, and sends the findings to rank 0, which writes them to the file. Returns the
/// exit code of all ranks: kDone or kDifference. If anything fails, every rank's process ends with
/// exit code 3.
estimator::ExitCode be_real_rank(const estimator::Plan& plan, const RealRankJob& job);

}  // namespace sim
