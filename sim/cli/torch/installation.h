// Where the parts of this program are, and with what it was built.
#pragma once

#include <filesystem>

namespace sim {

/// The program that runs.
std::filesystem::path own_program();

/// The folder with onerank-rank, virtual_gpu/ and exec/. It is lib/onerank for an installed
/// program, and the program's own folder in the build folder.
std::filesystem::path parts_folder();

/// Whether this is an installed program. Then the folder in which it was built may be gone.
bool is_installed();

/// What the file built_with.json in the parts folder says. Things that are installed beside the
/// program are given by a relative path, so that the installation can be moved.
struct BuiltWith {
  std::filesystem::path sources;       ///< sources of what `onerank exec` loads into a program
  std::filesystem::path plans;         ///< examples of plans
  std::filesystem::path torch;         ///< the package, with lib/ and include/; need not exist
  std::filesystem::path cuda_headers;  ///< need not exist
};
BuiltWith built_with();

}  // namespace sim
