// A folder that is removed with its owner.
#pragma once

#include <filesystem>

namespace sim {

class TemporaryFolder {
 public:
  /// Makes an empty folder in the system's folder for temporary files (TMPDIR). Also removes such
  /// folders that processes of this user left there when they were killed. Throws UserError (this
  /// machine lacks something) when the folder cannot be made.
  TemporaryFolder();
  /// The same in the folder `parent`.
  explicit TemporaryFolder(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_;  ///< shows that its owner lives
};

}  // namespace sim
