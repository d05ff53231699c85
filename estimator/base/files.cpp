#include "estimator/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <utility>

#include "estimator/base/machine.h"

namespace estimator {
namespace {

UserError cannot_read(const std::string& path, const std::string& why) {
  return UserError(
      {.what = "cannot read " + path, .where = why, .help = "check the path and its permissions"});
}

UserError cannot_read(const std::string& path, int error_number) {
  if (machine_way_out(error_number)) return machine_error("cannot read " + path, error_number);
  return cannot_read(path, std::strerror(error_number));
}

UserError cannot_write(const std::string& path, int error_number) {
  const std::string what = "cannot write " + path;
  if (machine_way_out(error_number)) return machine_error(what, error_number);
  return UserError({.what = what,
                    .where = std::strerror(error_number),
                    .help = "give a path in a folder that you may write to"});
}

/// An open file, closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// False when what was written has not arrived, which some file systems say only here.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

/// While it lives, the signals that ask a process to end wait, so that no half-written file is
/// left. (Where other threads run, one of them may still take such a signal.)
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal_number : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&ending, signal_number);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

/// Opens a file to read, without waiting for the writer of a pipe.
Descriptor open_to_read(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file.is_open() || fstat(file.number(), &status) != 0) {
    throw cannot_read(path, errno);
  }
  if (S_ISDIR(status.st_mode)) throw cannot_read(path, "it is a folder");
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    throw cannot_read(path, "it is a device, not a file");
  }
  return file;
}

/// The next bytes, or none at the end of the file. `buffer` holds them until the next call.
std::string_view read_some(const Descriptor& file,
                           std::string& buffer,
                           const std::string& path,
                           std::chrono::milliseconds silence) {
  buffer.resize(64 * 1024);
  for (;;) {
    pollfd watched{file.number(), POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(silence.count())) == 0) {
      throw cannot_read(path,
                        fmt::format("it is a pipe, and nothing has come through it for {} s",
                                    static_cast<double>(silence.count()) / 1000));
    }
    const ssize_t count = read(file.number(), buffer.data(), buffer.size());
    if (count >= 0) return std::string_view(buffer).substr(0, static_cast<std::size_t>(count));
    if (errno != EINTR && errno != EAGAIN) throw cannot_read(path, errno);
  }
}

void write_all(const Descriptor& file, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(file.number(), content.data(), content.size());
    if (written >= 0) content.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) throw cannot_write(path, errno);
  }
}

/// The file that a symbolic link means: it is replaced, not the link.
std::string resolve_links(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::canonical(path, failed);
  return failed ? path : target.string();
}

/// A name in the folder of `target` that nobody can guess and that is never too long.
std::string name_beside(const std::string& target) {
  std::random_device random;
  const std::string name = fmt::format(".onerank-{:08x}{:08x}", random(), random());
  return (std::filesystem::path(target).parent_path() / name).string();
}

/// Lets `fill` write a new file, which then takes the place of `target`. Messages name `path`.
void replace(const std::string& target,
             const std::string& path,
             mode_t mode,
             const std::function<void(const Descriptor&)>& fill) {
  const SignalsHeld held;
  const std::string beside = name_beside(target);
  Descriptor file(
      open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0666));
  if (!file.is_open()) throw cannot_write(path, errno);
  try {
    fill(file);
    const bool is_placed = file.close() && rename(beside.c_str(), target.c_str()) == 0;
    if (!is_placed) throw cannot_write(path, errno);
  } catch (...) {
    unlink(beside.c_str());
    throw;
  }
}

/// Lets `fill` write what is to stand under `path`.
void write_whole(const std::string& path, const std::function<void(const Descriptor&)>& fill) {
  struct stat status {};
  const bool is_there = stat(path.c_str(), &status) == 0;
  if (!is_there) return replace(resolve_links(path), path, 0666, fill);
  if (S_ISREG(status.st_mode)) {
    return replace(resolve_links(path), path, status.st_mode, [&](const Descriptor& file) {
      fchmod(file.number(), status.st_mode & 07777);  // open() looked at the umask
      fill(file);
    });
  }
  if (S_ISDIR(status.st_mode)) throw cannot_write(path, EISDIR);
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));  // nothing to rename onto
  if (!file.is_open()) throw cannot_write(path, errno);
  fill(file);
  if (!file.close()) throw cannot_write(path, errno);
}

}  // namespace

std::string read_file(const std::string& path, const ReadLimits& limits) {
  const Descriptor file = open_to_read(path);
  std::string content, buffer;
  for (;;) {
    const std::string_view some = read_some(file, buffer, path, limits.silence);
    if (some.empty()) return content;
    content += some;
    if (content.size() > limits.bytes) {
      throw cannot_read(path, fmt::format("it is too large, more than {} MiB", limits.bytes >> 20));
    }
  }
}

void write_file_whole(const std::string& path, std::string_view content) {
  write_whole(path, [&](const Descriptor& file) { write_all(file, content, path); });
}

void copy_file_whole(const std::string& from, const std::string& to) {
  const Descriptor source = open_to_read(from);
  write_whole(to, [&](const Descriptor& file) {
    std::string buffer;
    for (;;) {
      const std::string_view some = read_some(source, buffer, from, ReadLimits{}.silence);
      if (some.empty()) return;
      write_all(file, some, to);
    }
  });
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_directory(path, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) throw cannot_write(path, error.value());
}

bool is_impossible_path(const std::error_code& error) {
  return error == std::errc::filename_too_long || error == std::errc::too_many_symbolic_link_levels;
}

}  // namespace estimator
