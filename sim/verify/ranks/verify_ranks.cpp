#include "sim/verify/ranks/verify_ranks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "sim/rank/child_processes.h"
#include "sim/verify/ranks/deadline.h"
#include "sim/verify/ranks/whole_model.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Plan;
using estimator::UserError;

/// A listening socket on a free port of the loopback.
class LoopbackSocket {
 public:
  LoopbackSocket() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    if (descriptor_ < 0 || bind(descriptor_, address, length) != 0 ||
        listen(descriptor_, SOMAXCONN) != 0 || getsockname(descriptor_, address, &length) != 0) {
      throw UserError({.what = "cannot open a port on the loopback",
                       .where = std::strerror(errno),
                       .help = "verify needs a machine with networking on 127.0.0.1"},
                      ExitCode::kMachineLacks);
    }
  }
  ~LoopbackSocket() { close(descriptor_); }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;

  int descriptor() const { return descriptor_; }
  int port() const { return ntohs(address_.sin_port); }

 private:
  int descriptor_;
  sockaddr_in address_{};
};

/// All seats of a world on this machine alone.
std::vector<WorldSeat> loopback_seats(const LoopbackSocket& socket, int64_t size) {
  std::vector<WorldSeat> seats;
  for (int64_t rank = 0; rank < size; ++rank) {
    seats.push_back({.port = socket.port(), .rank = rank, .size = size});
  }
  seats.front().keeps_store = true;
  seats.front().listening_socket = socket.descriptor();
  return seats;
}

bool is_verdict(const ChildProcesses::Ended& ended) {
  if (!WIFEXITED(ended.status)) return false;
  const int code = WEXITSTATUS(ended.status);
  return code == static_cast<int>(ExitCode::kDone) ||
         code == static_cast<int>(ExitCode::kDifference);
}

/// Starts the ranks and waits for all of them; the first that fails ends the others.
ExitCode run_seats(const Plan& plan, const std::vector<WorldSeat>& seats, const VerifyJob& job) {
  write_end_to(job.errors_file);
  ChildProcesses processes(job.errors_file);
  for (const WorldSeat& seat : seats) {
    processes.start(fmt::format("rank {}", seat.rank), [&] {
      return static_cast<int>(be_real_rank(plan,
                                           {.seat = seat,
                                            .timeouts = job.timeouts,
                                            .output_folder = job.output_folder,
                                            .hooks = job.hooks}));
    });
  }
  ExitCode exit_code = ExitCode::kDone;
  while (processes.running() > 0) {
    const ChildProcesses::Ended ended = processes.wait_for_one();
    if (!is_verdict(ended)) throw_failure(ended);
    exit_code = static_cast<ExitCode>(WEXITSTATUS(ended.status));
  }
  return exit_code;
}

/// A child that was killed could not tell its world; this does.
ExitCode run_in_launched_world(const Plan& plan, const WorldSeat& seat, const VerifyJob& job) {
  try {
    return run_seats(plan, {seat}, job);
  } catch (const UserError& error) {
    if (!error.problems().empty()) report_failure(seat, error.problems().front());
    throw;
  }
}

}  // namespace

ExitCode verify_ranks(const Plan& plan, const VerifyJob& job) {
  const Plan comparable = without_dropout(plan);
  if (job.seat) return run_in_launched_world(comparable, *job.seat, job);
  const LoopbackSocket socket;
  return run_seats(comparable, loopback_seats(socket, plan.world_size()), job);
}

}  // namespace sim
