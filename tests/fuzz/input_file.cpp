#include "tests/fuzz/input_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fuzz {
namespace {

struct RemovedAtExit {
  std::string path;
  ~RemovedAtExit() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

}  // namespace

const std::string& in_file(const uint8_t* data, size_t size, const std::string& extension) {
  static const RemovedAtExit file{std::filesystem::temp_directory_path() /
                                  ("onerank-fuzz-" + std::to_string(getpid()) + extension)};
  std::ofstream(file.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return file.path;
}

}  // namespace fuzz
