#include "sim/cli/process/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "estimator/base/machine.h"

namespace sim {
namespace {

bool is_ignored(int signal_number) {
  struct sigaction action {};
  return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Interrupts::Interrupts() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (const int signal_number : {SIGINT, SIGTERM}) {
    if (!is_ignored(signal_number)) sigaddset(&watched, signal_number);
  }
  descriptor_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw estimator::machine_error("cannot wait for signals", errno);
  pthread_sigmask(SIG_BLOCK, &watched, &before_);
}

Interrupts::~Interrupts() {
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::take_request_to_end() const {
  bool requested = false;
  signalfd_siginfo signal{};
  while (read(descriptor_, &signal, sizeof(signal)) == sizeof(signal)) {
    requested = requested || signal.ssi_signo != SIGCHLD;
  }
  return requested;
}

void Interrupts::restore_in_child() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace sim
