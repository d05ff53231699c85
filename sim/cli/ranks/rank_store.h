// A folder that keeps what executed ranks gave. A command that is started again, or several
// machines that share the folder, then run no rank twice.
//
// The folder has a file for each rank that was run: its profile, or why it cannot run, with a key
// that says all on which this depends: the plan, the rank, the device, how it was run, the programs
// and libraries that ran it and the version of torch. Its name is a hash of the key. A file with
// another key is not read, and is replaced.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/cli/ranks/rank_process.h"

namespace sim {

/// The names of this machine's GPUs, each once, as NVIDIA's driver tells them ("NVIDIA H100 80GB
/// HBM3"); "" without a driver. `folder` has a folder for each GPU.
std::string gpus_of_driver(const std::filesystem::path& folder = "/proc/driver/nvidia/gpus");

class RankStore {
 public:
  /// The folder of `job`; "" keeps nothing. Throws UserError if it cannot be made.
  RankStore(const RankJob& job, const Environment& environment);

  /// What these ranks of a plan gave, as ranks of this plan; empty unless all of them are kept, or
  /// one that cannot run.
  std::optional<RanksAnswer> find(const RanksOfPlan& ranks) const;
  /// `profile` is the text of the rank's profile.
  void keep_profile(const estimator::Plan& plan, int64_t rank, const std::string& profile) const;
  void keep_refusal(const estimator::Plan& plan, int64_t rank, const std::string& refusal) const;

 private:
  std::string key_of(const estimator::Plan& plan, int64_t rank) const;
  std::string path_of(const std::string& key) const;
  void keep(const estimator::Plan& plan,
            int64_t rank,
            const char* what,
            const std::string& json) const;

  std::string folder_;
  std::string how_;  ///< how ranks are run
};

}  // namespace sim
