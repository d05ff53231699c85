// Finds the processes of a program that used the GPU, and the one that is the rank.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// One process, with what its recorder wrote.
struct ProgramProcess {
  pid_t id = 0;
  std::filesystem::path folder;  ///< has its profile and its memory files
  estimator::RankProfile profile;
  std::chrono::steady_clock::time_point seen;  ///< when the profile was found
};

/// The rank that the user asks for. If no world size is given, the program decides it.
struct WantedRank {
  int64_t rank = 0;
  std::optional<int64_t> world_size;
};

/// A folder in which every process makes its own folder, named by its process id.
class ProgramProcesses {
 public:
  explicit ProgramProcesses(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Reads the profiles that were written since the last call.
  void look();
  const std::vector<ProgramProcess>& all() const { return all_; }
  /// How many processes have begun to use the GPU. Those without a profile are still running, or
  /// ended without running their exit handlers.
  int64_t count_started() const;
  /// Why the recorder could not write the profile of a process, of one of those where it could not;
  /// empty where it never failed.
  std::string recorder_error() const;

 private:
  const std::filesystem::path folder_;
  std::vector<ProgramProcess> all_;
};

/// Whether the process trained or tried to: it stepped an optimizer, ran out of memory, or asked
/// for something that cannot be invented. Launchers, helper processes and compilers do none of
/// these.
bool has_trained(const estimator::RankProfile& profile);

/// The processes that trained as the wanted rank of the wanted world.
std::vector<const ProgramProcess*> candidates(const std::vector<ProgramProcess>& processes,
                                              const WantedRank& wanted);

/// The process that is the rank. If no process has trained, it is the one that says most about the
/// program: one of the wanted rank if there is any, and among these the one that used most memory.
/// Throws UserError (bad input) when several processes trained as the rank, or when only other
/// ranks trained. `processes` must not be empty.
const ProgramProcess& rank_process(const std::vector<ProgramProcess>& processes,
                                   const WantedRank& wanted);

/// Whether a process with this id is running. A process that has ended but was not waited for does
/// not count.
bool is_running(pid_t id);

}  // namespace sim
