// The processes of a program that used the GPU, and which of them is the rank.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// One process, as its recorder left it.
struct ProgramProcess {
  pid_t id = 0;
  std::filesystem::path folder;  ///< its profile and its files of memory
  estimator::RankProfile profile;
  std::chrono::steady_clock::time_point seen;  ///< when the profile was found
};

/// What the user asks for. Without a world size the world is what the program makes of it.
struct WantedRank {
  int64_t rank = 0;
  std::optional<int64_t> world_size;
};

/// A folder in which every process makes one of its own, named by its id.
class ProgramProcesses {
 public:
  explicit ProgramProcesses(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Reads the profiles that were written since the last call.
  void look();
  const std::vector<ProgramProcess>& all() const { return all_; }
  /// How many have begun to use the GPU; those without a profile run, or ended without exit
  /// handlers.
  int64_t count_started() const;

 private:
  const std::filesystem::path folder_;
  std::vector<ProgramProcess> all_;
};

/// Whether the process trained, or tried to: it stepped an optimizer, ran out of memory, or asked
/// for what cannot be invented. Launchers, helpers and compilers do none of it.
bool has_trained(const estimator::RankProfile& profile);

/// Those that trained as the wanted rank of the wanted world.
std::vector<const ProgramProcess*> candidates(const std::vector<ProgramProcess>& processes,
                                              const WantedRank& wanted);

/// The process that is the rank. Where none has trained, the one that tells most of the program: of
/// the wanted rank if there is one, and the fullest. Throws UserError (bad input) when several have
/// trained as the rank, or only others have; `processes` is not empty.
const ProgramProcess& rank_process(const std::vector<ProgramProcess>& processes,
                                   const WantedRank& wanted);

/// Whether a process of this id runs; one that has ended and was not waited for does not.
bool is_running(pid_t id);

}  // namespace sim
