#include "sim/cli/process/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "estimator/base/errors.h"
#include "sim/cli/process/environment.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "onerank-run-";

/// The folder itself, open and locked; -1 when another process holds its lock. No other process
/// gets the descriptor, so the lock ends with this one.
int lock_folder(const fs::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

/// Whether it is this user's, and old enough that its owner has come to lock it.
bool may_be_left_over(const fs::path& folder) {
  constexpr time_t kYoungest = 60;
  struct stat status {};
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && time(nullptr) - status.st_mtime > kYoungest;
}

[[noreturn]] void refuse(const std::string& why) {
  throw estimator::UserError({.what = "cannot make a temporary folder",
                              .where = why,
                              .help = "set TMPDIR to a folder that you may write to"},
                             estimator::ExitCode::kMachineLacks);
}

fs::path usual_parent() {
  std::error_code error;
  fs::path parent = fs::temp_directory_path(error);
  if (error) refuse(error.message());
  return parent;
}

void remove_left_over(const fs::path& parent) {
  std::error_code ignored;  // another process may remove the same
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (!may_be_left_over(entry.path())) continue;
    const int lock = lock_folder(entry.path());
    if (lock < 0) continue;
    fs::remove_all(entry.path(), ignored);
    close(lock);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() : TemporaryFolder(usual_parent()) {}

TemporaryFolder::TemporaryFolder(const fs::path& parent) {
  require_utf8(parent.string(), "the folder for temporary files (TMPDIR)");
  remove_left_over(parent);
  std::string name = (parent / kPrefix).string() + "XXXXXX";
  if (mkdtemp(name.data()) == nullptr) refuse(std::strerror(errno));
  path_ = name;
  lock_ = lock_folder(path_);
}

TemporaryFolder::~TemporaryFolder() {
  // Before the removal, which needs descriptors of its own: there may be none but this one. Who
  // takes the lock meanwhile removes the same folder.
  if (lock_ >= 0) close(lock_);
  std::error_code ignored;  // nothing can be done about it here
  fs::remove_all(path_, ignored);
}

}  // namespace sim
