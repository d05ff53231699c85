// The folders of a job of `onerank exec`.
#pragma once

#include <filesystem>
#include <optional>

#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/programs/exec_process.h"

namespace sim {

/// The folders in which the ranks of a job meet and leave their files. All but the one for profiles
/// that the user named are removed with it.
class ExecFolders {
 public:
  /// `output` is made if it is not there; empty: nobody wants to keep the profiles.
  ExecFolders(const std::filesystem::path& output, bool has_several_ranks);

  /// Tells the job its folders, and the name of this run if it has several ranks.
  void put_into(ExecJob& job) const;

 private:
  const TemporaryFolder memory_;
  std::optional<TemporaryFolder> peers_;
  std::optional<TemporaryFolder> profiles_;
  std::filesystem::path output_;
};

}  // namespace sim
