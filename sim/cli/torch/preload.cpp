#include "sim/cli/torch/preload.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace sim {
namespace {

namespace fs = std::filesystem;

/// ld.so splits at the first two and expands the third.
bool can_stand_in_ld_preload(const fs::path& path) {
  return path.string().find_first_of(" :$") == std::string::npos;
}

/// For a link to the libraries.
fs::path temporary_parent() {
  std::error_code ignored;
  const fs::path usual = fs::temp_directory_path(ignored);
  return !usual.empty() && can_stand_in_ld_preload(usual) ? usual : "/tmp";
}

}  // namespace

PreloadFolder::PreloadFolder(const fs::path& folder) : path_(fs::absolute(folder)) {
  if (can_stand_in_ld_preload(path_)) return;
  const fs::path link = link_.emplace(temporary_parent()).path() / "lib";
  fs::create_directory_symlink(path_, link);
  path_ = link;
}

Preload::Preload(const fs::path& folder, const std::string& prefix) : libraries_(folder / "lib") {
  std::ifstream list(folder / "preload");
  if (!list && errno != ENOENT) {
    throw std::runtime_error("cannot read " + (folder / "preload").string() + ": " +
                             std::strerror(errno));
  }
  if (!list) {
    throw std::runtime_error("no virtual GPU at " + folder.string() +
                             ": it is built only for a torch with CUDA (libtorch_cuda.so)");
  }
  for (std::string name; std::getline(list, name);) {
    if (!name.starts_with(prefix)) continue;
    if (!value_.empty()) value_ += ':';
    value_ += (libraries_.path() / name).string();
  }
}

}  // namespace sim
