// SIGINT and SIGTERM as something that a loop can wait for, so that what was started is ended and
// what was written for a while is removed before the program ends.
#pragma once

#include <signal.h>

namespace sim {

/// While it lives, SIGINT, SIGTERM and SIGCHLD wait in descriptor() instead of acting (SIGINT and
/// SIGTERM only if they are not ignored, as under nohup). Afterwards they act again, also those
/// that came meanwhile. One at a time, on the main thread.
class Interrupts {
 public:
  /// Throws UserError (this machine lacks something) when the system refuses.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable when a signal has come.
  int descriptor() const { return descriptor_; }

  /// Takes all signals that have come; true when one of them asks the program to end.
  bool take_request_to_end() const;

  /// For a new process before exec: its signals as they were before.
  void restore_in_child() const;

 private:
  sigset_t before_;
  int descriptor_;
};

}  // namespace sim
