// A lock that processes hold by a file, while one of them makes what all of them need.
#pragma once

#include <filesystem>
#include <string>

#include "sim/cli/process/interrupts.h"

namespace sim {

class FileLock {
 public:
  /// Makes the file if there is none, and waits for another process that holds it; then it says
  /// once on standard error that it waits for `whom`. Throws UserError: this machine lacks
  /// something, if the file cannot be opened or locked; interrupted, if a signal asks for that
  /// while it waits.
  FileLock(const std::filesystem::path& file,
           const std::string& whom,
           const Interrupts& interrupts);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace sim
