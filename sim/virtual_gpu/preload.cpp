#include "sim/virtual_gpu/preload.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace virtual_gpu {
namespace {

namespace fs = std::filesystem;

/// ld.so splits at the first two and expands the third.
bool can_stand_in_ld_preload(const fs::path& path) {
  return path.string().find_first_of(" :$") == std::string::npos;
}

fs::path make_temporary_folder() {
  for (const fs::path& parent : {fs::temp_directory_path(), fs::path("/tmp")}) {
    std::string name = (parent / "onerank-virtual-gpu-XXXXXX").string();
    if (can_stand_in_ld_preload(parent) && mkdtemp(name.data()) != nullptr) return name;
  }
  throw std::runtime_error("cannot make a temporary folder for the virtual GPU's libraries");
}

}  // namespace

Preload::Preload(const fs::path& folder, const std::string& prefix) {
  std::ifstream list(folder / "preload");
  if (!list && errno != ENOENT) {
    throw std::runtime_error("cannot read " + (folder / "preload").string() + ": " +
                             std::strerror(errno));
  }
  if (!list) {
    throw std::runtime_error("no virtual GPU at " + folder.string() +
                             ": it is built only for a torch with CUDA (libtorch_cuda.so)");
  }
  fs::path libraries = fs::absolute(folder / "lib");
  if (!can_stand_in_ld_preload(libraries)) {
    temporary_folder_ = make_temporary_folder();
    fs::create_directory_symlink(libraries, temporary_folder_ / "lib");
    libraries = temporary_folder_ / "lib";
  }
  for (std::string name; std::getline(list, name);) {
    if (!name.starts_with(prefix)) continue;
    if (!value_.empty()) value_ += ':';
    value_ += (libraries / name).string();
  }
}

Preload::~Preload() {
  std::error_code ignored;  // a left-over link does no harm
  if (!temporary_folder_.empty()) fs::remove_all(temporary_folder_, ignored);
}

}  // namespace virtual_gpu
