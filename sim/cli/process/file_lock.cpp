#include "sim/cli/process/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "estimator/base/machine.h"
#include "sim/cli/process/output.h"

namespace sim {
namespace {

using estimator::UserError;

/// Whether it is held now; false while another process holds it.
bool try_lock(int file, const std::string& name) {
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  throw estimator::machine_error("cannot lock " + name, errno);
}

void wait_for_lock(int file,
                   const std::string& name,
                   const std::string& whom,
                   const Interrupts& interrupts) {
  constexpr int kTickMilliseconds = 200;
  for (bool has_told = false; !try_lock(file, name); has_told = true) {
    if (!has_told) write_to_standard_error(fmt::format("onerank: waiting for {}\n", whom));
    pollfd watched{interrupts.descriptor(), POLLIN, 0};
    poll(&watched, 1, kTickMilliseconds);
    if (interrupts.take_request_to_end()) {
      throw UserError({"interrupted", "", ""}, estimator::ExitCode::kInterrupted);
    }
  }
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& file,
                   const std::string& whom,
                   const Interrupts& interrupts)
    : file_(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
  if (file_ < 0) throw estimator::machine_error("cannot open " + file.string(), errno);
  try {
    wait_for_lock(file_, file.string(), whom, interrupts);
  } catch (...) {
    close(file_);
    throw;
  }
}

FileLock::~FileLock() { close(file_); }

}  // namespace sim
