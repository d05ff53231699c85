#include "sim/cli/import/python/python_files.h"

#include <algorithm>
#include <filesystem>

#include "estimator/base/files.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestPythonBytes = std::size_t{1} << 20;
constexpr int kMostFoldersAbove = 12;

/// "a.b" as the path a/b.
fs::path path_of(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module;
}

std::optional<PythonFile> file_in(const fs::path& folder, const std::string& module) {
  const fs::path path = folder / path_of(module);
  for (const fs::path& file : {fs::path(path.string() + ".py"), path / "__init__.py"}) {
    if (std::error_code ignored; !fs::is_regular_file(file, ignored)) continue;
    return PythonFile{.path = file.lexically_normal().string(),
                      .text = estimator::read_file(file.string(), {.bytes = kLargestPythonBytes})};
  }
  return std::nullopt;
}

std::optional<PythonFile> relative_file(fs::path folder, const std::string& module) {
  const std::size_t dots = std::min(module.find_first_not_of('.'), module.size());
  for (std::size_t i = 1; i < dots; ++i) folder = folder.parent_path();
  return file_in(folder, module.substr(dots));
}

}  // namespace

PythonFinder python_files_around() {
  return [](const std::string& path, const std::string& module) -> std::optional<PythonFile> {
    std::error_code ignored;
    fs::path folder = fs::absolute(path, ignored).lexically_normal().parent_path();
    if (module.starts_with('.')) return relative_file(folder, module);
    for (int i = 0; i < kMostFoldersAbove; ++i) {
      if (auto file = file_in(folder, module)) return file;
      if (auto file = file_in(folder / "src", module)) return file;
      if (folder == folder.parent_path()) break;
      folder = folder.parent_path();
    }
    return std::nullopt;
  };
}

}  // namespace sim
