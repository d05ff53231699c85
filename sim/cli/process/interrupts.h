// Turns SIGINT and SIGTERM into events for which a loop can wait, so that started processes are
// ended and temporary files are removed before the program ends.
#pragma once

#include <signal.h>

namespace sim {

/// While it lives, SIGINT, SIGTERM and SIGCHLD are queued in descriptor() instead of acting (SIGINT
/// and SIGTERM only if they are not ignored, as they are under nohup). Afterwards they act again,
/// also those that came meanwhile. There may be only one such object, on the main thread.
class Interrupts {
 public:
  /// Throws UserError (this machine lacks something) when the system refuses.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable when a signal has come.
  int descriptor() const { return descriptor_; }

  /// Takes all queued signals. Returns true when one of them asks the program to end.
  bool take_request_to_end() const;

  /// Restores the signals as they were before. For a new process before exec.
  void restore_in_child() const;

 private:
  sigset_t before_;
  int descriptor_;
};

}  // namespace sim
