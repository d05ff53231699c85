#include "sim/cli/process/private_folder.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "estimator/base/errors.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnFolder = "set XDG_CACHE_HOME to a folder that only you may write to";

[[noreturn]] void refuse(const std::string& what, const std::string& where) {
  throw estimator::UserError({.what = what, .where = where, .help = kOwnFolder},
                             estimator::ExitCode::kMachineLacks);
}

void require_private(const fs::path& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0) {
    refuse("cannot use " + folder.string(), std::strerror(errno));
  }
  const char* fault = nullptr;
  if (!S_ISDIR(status.st_mode)) {
    fault = "it is no folder";
  } else if (status.st_uid != geteuid()) {
    fault = "it belongs to another user";
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    fault = "others may write to it";
  }
  if (fault != nullptr) refuse("libraries are not taken from " + folder.string(), fault);
}

void make_and_require_private(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    refuse("cannot make " + folder.string(), std::strerror(errno));
  }
  require_private(folder);
}

}  // namespace

fs::path user_cache_folder(const Environment& environment) {
  if (const auto caches = find_variable(environment, kCacheVariable)) return *caches;
  if (const auto home = find_variable(environment, kHomeVariable))
    return fs::path(*home) / ".cache";
  const passwd* user = getpwuid(geteuid());
  if (user == nullptr || user->pw_dir == nullptr || *user->pw_dir == '\0') {
    refuse("there is no folder to keep libraries in",
           "neither XDG_CACHE_HOME nor HOME is set, and the system knows no home of this user");
  }
  return fs::path(user->pw_dir) / ".cache";
}

void make_private_folder(const fs::path& folder, const fs::path& outermost) {
  std::error_code error;
  fs::create_directories(outermost.parent_path(), error);
  fs::path next = outermost;
  make_and_require_private(next);
  for (const fs::path& name : folder.lexically_relative(outermost)) {
    make_and_require_private(next /= name);
  }
}

}  // namespace sim
