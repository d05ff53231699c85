#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/cli/process/temporary_folder.h"

namespace sim {

/// A folder of libraries, with a path that can be used in LD_PRELOAD, which is split at spaces and
/// colons. If the folder's own path has such a character, path() is a symbolic link in a temporary
/// folder. The destructor removes the link, so keep the object until the processes that preload
/// from it have ended.
class PreloadFolder {
 public:
  /// Throws UserError as TemporaryFolder does if the link cannot be made.
  explicit PreloadFolder(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> link_;  // holds the link, if one is needed
  std::filesystem::path path_;
};

/// The value of LD_PRELOAD that loads the virtual GPU's libraries in place of NVIDIA's. Keep the
/// object until the processes that preload from it have ended.
class Preload {
 public:
  /// `folder` has lib/ and the list `preload`, as the build writes them (<build>/virtual_gpu). Only
  /// libraries of the list whose names begin with `prefix` are used. Throws std::runtime_error if
  /// the folder does not have them, and UserError as PreloadFolder does.
  explicit Preload(const std::filesystem::path& folder, const std::string& prefix = "");

  const std::string& value() const { return value_; }

 private:
  PreloadFolder libraries_;
  std::string value_;
};

}  // namespace sim
