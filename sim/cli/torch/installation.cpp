#include "sim/cli/torch/installation.h"

#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBuiltWith = "built_with.json";

fs::path program_folder() { return own_program().parent_path(); }

}  // namespace

fs::path own_program() { return fs::read_symlink("/proc/self/exe"); }

bool is_installed() { return !fs::exists(program_folder() / kBuiltWith); }

fs::path parts_folder() {
  const fs::path folder = program_folder();
  return is_installed() ? folder.parent_path() / "lib" / "onerank" : folder;
}

BuiltWith built_with() {
  const fs::path parts = parts_folder();
  const std::string file = (parts / kBuiltWith).string();
  const estimator::Json told = estimator::parse_json(estimator::read_file(file), file);
  const auto path = [&](const char* key) {
    return (parts / told.at(key).get<std::string>()).lexically_normal();
  };
  return {.sources = path("sources"),
          .plans = path("plans"),
          .torch = path("torch"),
          .cuda_headers = path("cuda_headers")};
}

}  // namespace sim
