// A folder that goes away with its owner.
#pragma once

#include <filesystem>

namespace sim {

class TemporaryFolder {
 public:
  /// Makes an empty folder under the system's folder for temporary files (TMPDIR), and removes
  /// those there that a process of this user's left when it was killed. Throws UserError (this
  /// machine lacks something) when it cannot.
  TemporaryFolder();
  /// The same under `parent`.
  explicit TemporaryFolder(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_;  ///< says that its owner lives
};

}  // namespace sim
