// What this machine refuses: too many processes or open files, no memory, a full disk. These are no
// bugs of Onerank's (exit code 70) and no bad input (2), but exit code 3 with the way out.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "estimator/base/errors.h"

namespace estimator {

/// The way out of an error number that says that this machine has run out of something; empty for
/// one that says something else.
std::optional<std::string> machine_way_out(int error_number);

/// The error for a system call that failed: `what` could not be done. Exit code 3.
UserError machine_error(std::string what, int error_number);

/// Tells what was thrown on standard error, as the last thing that a process does with it, and
/// returns the exit code for it: a UserError's own; 3 for memory or another resource of the system
/// that ran out; 70, with the request to report it, for everything else.
ExitCode tell_failure(const std::exception_ptr& thrown);

/// Lets what nobody catches, such as an exception in a thread or in a destructor, end the process
/// as tell_failure() says. Children that are forked do the same.
void tell_uncaught_failures();

/// Lets writing beyond a limit on the size of files, and to a reader that has gone, fail as an
/// error of write() instead of killing the process. To be called first in main().
void ignore_signals_of_writing();

/// The signals of ignore_signals_of_writing() as a new program expects them. Safe after fork().
void restore_signals_of_writing();

}  // namespace estimator
