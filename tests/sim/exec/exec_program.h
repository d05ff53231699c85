// `onerank exec` with one of the programs in programs/, in a folder of its own.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "estimator/base/files.h"
#include "estimator/profile/rank_profile.h"
#include "tests/paths.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {

class ExecProgram : public OnerankProgram {
 protected:
  /// The command line; `flags` come before `--`, `arguments` after the program.
  std::vector<std::string> command(const std::string& program,
                                   const std::vector<std::string>& flags,
                                   const std::vector<std::string>& arguments = {}) const {
    std::vector<std::string> words = {"exec", "--output", path("out")};
    words.insert(words.end(), flags.begin(), flags.end());
    const std::string file = std::string(tests::kExecPrograms) + "/" + program;
    words.insert(words.end(), {"--", tests::kPython, file});
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }

  /// Whether the programs can import a package, from beside torch or from PYTHONPATH; without some
  /// of them they are skipped.
  bool has_package(const std::string& name) const {
    const auto more = environment_.find("PYTHONPATH");
    std::istringstream folders(tests::kSitePackages +
                               (more == environment_.end() ? "" : ":" + more->second));
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (std::filesystem::exists(std::filesystem::path(folder) / name)) return true;
    }
    return false;
  }

  ProgramResult run_program(const std::string& program,
                            const std::vector<std::string>& flags,
                            const std::vector<std::string>& arguments = {}) {
    ProgramResult result = run(command(program, flags, arguments));
    EXPECT_THAT(temporary_files(), testing::IsEmpty());
    return result;
  }

  /// The number that a program printed behind `word`.
  static int64_t printed(const std::string& output, const std::string& word) {
    std::istringstream words(output);
    for (std::string next; words >> next;) {
      int64_t value = 0;
      if (next == word && words >> value) return value;
    }
    return -1;
  }

  estimator::RankProfile profile(int64_t rank) const {
    const std::string file = path("out/" + estimator::profile_file_name(rank));
    return estimator::read_rank_profile(estimator::read_file(file), file);
  }
};

}  // namespace sim
