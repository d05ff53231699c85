// Errors of this machine: too many processes or open files, no memory, a full disk. They are
// neither bugs of Onerank (exit code 70) nor bad input (2). They end with exit code 3 and say what
// to do.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "estimator/base/errors.h"

namespace estimator {

/// What a user can do about an error number (errno) that says that this machine has run out of
/// something; empty for all other error numbers.
std::optional<std::string> machine_way_out(int error_number);

/// The error for a system call that failed, with exit code 3. `what` says what could not be done.
UserError machine_error(std::string what, int error_number);

/// Prints the exception to standard error and returns the exit code for it: the UserError's own; 3
/// when memory or another resource of the system ran out; 70, with the request to report the bug,
/// for everything else. A process calls it last, before it ends. Into `errors_file`, unless that is
/// empty, it writes the error as error_message() has it, if the exit code is 2 or 3 and there is
/// memory for it.
ExitCode tell_failure(const std::exception_ptr& thrown, const std::string& errors_file = {});

/// What is told without memory, and so without an `errors_file`.
UserError no_memory_error();

/// From now on an exception that nobody catches, for example in a thread or a destructor, ends the
/// process with the message and exit code of tell_failure(). Forked children inherit this.
void tell_uncaught_failures();

/// Call it first in main(). Ignores SIGXFSZ and SIGPIPE: writing beyond the file size limit, or to
/// a reader that has gone, is then an error of write() and does not kill the process. Takes back
/// that the program's parent may have ignored SIGCHLD: the kernel would then keep no exit codes.
void take_usual_signals();

/// Takes SIGXFSZ and SIGPIPE as a new program expects them, before a new program is started. Safe
/// to call after fork().
void restore_signals_of_writing();

}  // namespace estimator
