#include "sim/cli/process/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "estimator/base/machine.h"
#include "estimator/base/stop_watch.h"

namespace sim {
namespace {

constexpr int kCannotStart = 127;  // the shell's and the dynamic loader's code for it

estimator::UserError cannot_start() {
  return estimator::machine_error("cannot start a program", errno);
}

/// Both ends of a pipe, closed with it.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw cannot_start();
    }
    read_end = ends[0];
    write_end = ends[1];
    fcntl(read_end, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close(read_end);
    close_write_end();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_write_end() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }

  int read_end = -1;
  int write_end = -1;
};

/// A vector of pointers that ends in null, as exec wants it.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// A child and its two pipes. Everything that allocates happens before fork().
class Child {
 public:
  Child(const SubprocessCommand& command, const Interrupts& interrupts) {
    std::vector<std::string> arguments = {command.program.string()};
    arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
    std::vector<std::string> variables;
    variables.reserve(command.environment.size());
    for (const auto& [name, value] : command.environment) {
      variables.push_back(fmt::format("{}={}", name, value));
    }
    const std::vector<char*> argv = pointers(arguments);
    const std::vector<char*> envp = pointers(variables);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) become(command, argv, envp, parent, interrupts);
    if (pid_ < 0) throw cannot_start();
    setpgid(pid_, pid_);  // here too: whoever comes first
    output_.close_write_end();
    error_.close_write_end();
  }

  ~Child() {
    kill(-pid_, SIGKILL);
    if (!ended_) waitpid(pid_, &status_, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int output() const { return output_.read_end; }
  int error() const { return error_.read_end; }
  int status() const { return status_; }

  pid_t pid() const { return pid_; }

  bool has_ended() {
    if (ended_) return true;
    const pid_t waited = waitpid(pid_, &status_, WNOHANG);
    ended_ = waited != 0;
    if (waited < 0) throw estimator::machine_error("cannot wait for a program", errno);
    return ended_;
  }

 private:
  [[noreturn]] void become(const SubprocessCommand& command,
                           const std::vector<char*>& argv,
                           const std::vector<char*>& envp,
                           pid_t parent,
                           const Interrupts& interrupts) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kCannotStart);  // it ended before prctl()
    setpgid(0, 0);
    estimator::restore_signals_of_writing();
    interrupts.restore_in_child();
    if (!command.shares_input || isatty(STDIN_FILENO) != 0) {
      dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    }
    if (!command.shares_output) {
      dup2(output_.write_end, STDOUT_FILENO);
      dup2(error_.write_end, STDERR_FILENO);
    } else if (command.output_to_error) {
      dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    execvpe(argv[0], argv.data(), envp.data());
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", argv[0], std::strerror(errno));
    _exit(kCannotStart);
  }

  Pipe output_;
  Pipe error_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

/// Appends what there is to read; false at the end of the file.
bool read_available(int descriptor, std::string& text) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count != 0;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Hands over the complete lines of `text` and removes them.
void take_lines(std::string& text, const std::function<void(std::string_view)>& on_line) {
  std::size_t from = 0;
  for (std::size_t end; (end = text.find('\n', from)) != std::string::npos; from = end + 1) {
    on_line(std::string_view(text).substr(from, end - from));
  }
  text.erase(0, from);
}

void keep_tail(std::string& text) {
  constexpr std::size_t kLongest = 64 * 1024;
  if (text.size() > kLongest) text.erase(0, text.size() - kLongest);
}

}  // namespace

std::filesystem::path find_executable(const std::string& program, const Environment& environment) {
  if (program.find('/') != std::string::npos) {
    return access(program.c_str(), X_OK) == 0 && !std::filesystem::is_directory(program) ? program
                                                                                         : "";
  }
  const auto path = environment.find("PATH");  // bytes, which need not be UTF-8
  std::istringstream folders(path == environment.end() ? "/bin:/usr/bin" : path->second);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::filesystem::path file = std::filesystem::path(folder.empty() ? "." : folder) / program;
    if (access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file)) return file;
  }
  return "";
}

SubprocessEnd run_subprocess(const SubprocessCommand& command,
                             const SubprocessHooks& hooks,
                             const Interrupts& interrupts) {
  constexpr int kTickMilliseconds = 200;
  Child child(command, interrupts);
  SubprocessEnd end;
  const std::string name = command.program.filename().string();
  estimator::StopWatch stop_watch;
  std::string output;
  std::array<pollfd, 3> watched = {pollfd{child.output(), POLLIN, 0},
                                   pollfd{child.error(), POLLIN, 0},
                                   pollfd{interrupts.descriptor(), POLLIN, 0}};
  for (bool ended = false; !ended;) {
    poll(watched.data(), watched.size(), kTickMilliseconds);
    if (interrupts.take_request_to_end()) {
      throw estimator::UserError({"interrupted", "", ""}, estimator::ExitCode::kInterrupted);
    }
    ended = child.has_ended();  // before reading: what it wrote last is there then
    if (!ended) stop_watch.is_stopped(child.pid(), name);
    if (!read_available(child.output(), output)) watched[0].fd = -1;
    if (!read_available(child.error(), end.error_output)) watched[1].fd = -1;
    take_lines(output, hooks.on_output_line);
    keep_tail(end.error_output);
    keep_tail(output);  // a line without end
    hooks.on_tick();
    if (!ended && hooks.is_to_end && hooks.is_to_end()) {
      end.was_ended = true;
      return end;
    }
  }
  if (WIFSIGNALED(child.status())) end.signal_number = WTERMSIG(child.status());
  if (WIFEXITED(child.status())) end.exit_code = WEXITSTATUS(child.status());
  return end;
}

}  // namespace sim
