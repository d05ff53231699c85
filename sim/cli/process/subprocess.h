// Runs another program to its end.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"

namespace sim {

struct SubprocessCommand {
  std::filesystem::path program;
  std::vector<std::string> arguments;  ///< without the program's name
  Environment environment;
  /// Its output goes to the output of this process, and hooks do not see it. With `output_to_error`
  /// its standard output goes to standard error.
  bool shares_output = false;
  bool output_to_error = false;
  /// It reads what this process is given to read, unless that is a terminal; else nothing.
  bool shares_input = false;
};

struct SubprocessHooks {
  std::function<void(std::string_view)> on_output_line;  ///< gets each line of its standard output
  std::function<void()> on_tick;                         ///< called a few times in a second
  std::function<bool()> is_to_end = nullptr;  ///< called as often; true kills the program
};

/// How the program ended: with an exit code or by a signal.
struct SubprocessEnd {
  int exit_code = 0;         ///< also 127 when it could not be started
  int signal_number = 0;     ///< 0: it was not killed
  bool was_ended = false;    ///< because SubprocessHooks::is_to_end returned true
  std::string error_output;  ///< what it wrote to standard error, at most the last 64 KiB
};

/// The file that execvp() would start; "" if there is none.
std::filesystem::path find_executable(const std::string& program, const Environment& environment);

/// Runs the program in its own process group. When the program ends, the rest of the group is
/// ended; when this process ends, the program is ended. Throws UserError (interrupted) after a
/// request to end, when the group has been killed. Throws UserError (this machine lacks something)
/// when the program cannot be started because there are too many processes or open files, or when
/// it was stopped by a signal and nobody continued it for 10 seconds.
SubprocessEnd run_subprocess(const SubprocessCommand& command,
                             const SubprocessHooks& hooks,
                             const Interrupts& interrupts);

}  // namespace sim
