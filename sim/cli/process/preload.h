#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/cli/process/temporary_folder.h"

namespace sim {

/// A folder of libraries by a path that can stand in LD_PRELOAD, which splits at spaces and colons.
/// If the folder's own path has one, this is a symbolic link in a temporary folder, which the
/// destructor removes: keep the object until the processes that preload from it have ended.
class PreloadFolder {
 public:
  /// Throws UserError as TemporaryFolder does if the link cannot be made.
  explicit PreloadFolder(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> link_;  // holds the link, if one is needed
  std::filesystem::path path_;
};

/// The value of LD_PRELOAD that puts the virtual GPU's libraries in front of NVIDIA's. Keep the
/// object as long as its PreloadFolder must be kept.
class Preload {
 public:
  /// `folder` holds lib/ and the list `preload`, as the build writes them (<build>/virtual_gpu).
  /// Of the list only the libraries whose names begin with `prefix`. Throws std::runtime_error if
  /// the folder does not hold them; UserError as PreloadFolder does.
  explicit Preload(const std::filesystem::path& folder, const std::string& prefix = "");

  const std::string& value() const { return value_; }

 private:
  PreloadFolder libraries_;
  std::string value_;
};

}  // namespace sim
