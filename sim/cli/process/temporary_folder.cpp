#include "sim/cli/process/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "estimator/base/errors.h"

namespace sim {

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string name = (parent / "onerank-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    throw estimator::UserError({.what = "cannot make a temporary folder",
                                .where = error ? error.message() : std::strerror(errno),
                                .help = "set TMPDIR to a folder that you may write to"},
                               estimator::ExitCode::kMachineLacks);
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nothing can be done about it here
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sim
