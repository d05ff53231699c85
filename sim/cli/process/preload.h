#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/cli/process/temporary_folder.h"

namespace sim {

/// The value of LD_PRELOAD that puts the virtual GPU's libraries in front of NVIDIA's.
///
/// LD_PRELOAD splits at spaces and colons. If the folder's path has one, the value goes through a
/// symbolic link in a temporary folder, which the destructor removes: keep the object until the
/// processes that were started with the value have ended.
class Preload {
 public:
  /// `folder` holds lib/ and the list `preload`, as the build writes them (<build>/virtual_gpu).
  /// Of the list only the libraries whose names begin with `prefix`. Throws std::runtime_error if
  /// the folder does not hold them; UserError as TemporaryFolder does if the link cannot be made.
  explicit Preload(const std::filesystem::path& folder, const std::string& prefix = "");

  const std::string& value() const { return value_; }

 private:
  std::string value_;
  std::optional<TemporaryFolder> temporary_folder_;  // holds the link, if one is needed
};

}  // namespace sim
