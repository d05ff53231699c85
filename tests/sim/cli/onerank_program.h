// The program `onerank`, run as a user runs it, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sim {

struct ProgramResult {
  int exit_code = -1;  ///< -1: it was killed by a signal
  std::string output;
  std::string error;
};

/// A folder for the test's files, an empty folder for temporary ones, and the environment that the
/// program gets: this process's, without the variables that Onerank reads, and a fake rank process.
class OnerankProgram : public testing::Test {
 protected:
  OnerankProgram();
  ~OnerankProgram() override;

  /// Runs `onerank` with the arguments to its end.
  ProgramResult run(const std::vector<std::string>& arguments);

  /// Starts it and returns its process id; finish() waits for it.
  pid_t start(const std::vector<std::string>& arguments);
  ProgramResult finish(pid_t pid);

  /// A path in the test's folder.
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a file there and returns its path.
  std::string write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;

  /// Names of what is in the folder for temporary files.
  std::vector<std::string> temporary_files() const;
  /// Makes them look an hour old.
  void age_temporary_files() const;

  std::map<std::string, std::string> environment_;
  std::string input_file_;         ///< the program's standard input; "": that of the tests
  std::map<int, rlim_t> limits_;   ///< of the program: RLIMIT_NOFILE and others
  bool ignores_children_ = false;  ///< the program starts with SIGCHLD ignored

 private:
  std::filesystem::path folder_;
};

/// `first`, the flags of a small valid plan on 8 GPUs that runs on the fake rank process without
/// preloading, and `more`, which may give one of those flags another value.
std::vector<std::string> small_plan(std::vector<std::string> first,
                                    const std::vector<std::string>& more = {});

}  // namespace sim
