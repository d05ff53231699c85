// The program `onerank-rank`, ready to be started: with a temporary folder, with a file for the
// plan if there is one, and with the virtual GPU's libraries preloaded if the device needs them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/torch/preload.h"

namespace sim {

/// The program `onerank-rank`, which need not be there.
std::filesystem::path rank_program_file(const Environment& environment);

class RankProgram {
 public:
  /// Throws UserError (this machine lacks something) if there is no folder for temporary files, or
  /// no virtual GPU.
  RankProgram(const estimator::Plan& plan,
              estimator::DeviceKind device,
              const Environment& environment);
  /// Without a plan.
  RankProgram(estimator::DeviceKind device, const Environment& environment);

  std::filesystem::path plan_file() const { return folder_.path() / "plan.json"; }
  /// The folder for what the program writes. It is removed with this object.
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Runs the program to its end and returns its exit code, kDone or kDifference. Throws UserError:
  /// with exit code 2 or 3 if the program ended with it; with 3 if torch is missing or has another
  /// version, or if the program was killed; with 130 if interrupted. Throws std::logic_error when
  /// the program ended in any other way.
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
