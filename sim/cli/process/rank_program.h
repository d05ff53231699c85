// The program `onerank-rank`, ready to be started: in a temporary folder, with the plan where there
// is one, and with the virtual GPU's libraries preloaded where the device needs them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"
#include "sim/cli/process/preload.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/process/temporary_folder.h"

namespace sim {

class RankProgram {
 public:
  /// Throws UserError (this machine lacks something) without a folder for temporary files or
  /// without the virtual GPU.
  RankProgram(const estimator::Plan& plan,
              estimator::DeviceKind device,
              const Environment& environment);
  /// Without a plan.
  RankProgram(estimator::DeviceKind device, const Environment& environment);

  std::filesystem::path plan_file() const { return folder_.path() / "plan.json"; }
  /// For what the program writes; gone with this object.
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Runs the program to its end and returns its exit code: kDone or kDifference.
  /// Throws UserError: bad input (2) or a lack of this machine (3) as the program found it; torch
  /// missing or foreign, the program killed (3); interrupted (130).
  /// Throws std::logic_error when it ended in any other way.
  int run(std::vector<std::string> arguments, const SubprocessHooks& hooks) const;

 private:
  RankProgram(const std::string& gpu_id,
              const estimator::MemoryConfig& memory,
              estimator::DeviceKind device,
              const Environment& environment);

  const Interrupts interrupts_;  // first: the folder and the process are gone before signals act
  const TemporaryFolder folder_;
  const std::unique_ptr<Preload> preload_;
  const std::filesystem::path program_;
  const Environment environment_;
};

}  // namespace sim
