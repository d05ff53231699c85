// Where this program's own parts lie, and what it was built with.
#pragma once

#include <filesystem>

namespace sim {

/// The folder of onerank-rank, virtual_gpu/ and exec/: lib/onerank where the program is installed,
/// the program's own folder where it was built.
std::filesystem::path parts_folder();

/// Whether this is an installation: the folder that it was built in may be gone.
bool is_installed();

/// As the file built_with.json among the parts tells. What is installed beside the program is told
/// by a path from there, so that the whole can be moved.
struct BuiltWith {
  std::filesystem::path sources;       ///< of what `onerank exec` puts into a program
  std::filesystem::path torch;         ///< the package, with lib/ and include/; need not exist
  std::filesystem::path cuda_headers;  ///< need not exist
};
BuiltWith built_with();

}  // namespace sim
