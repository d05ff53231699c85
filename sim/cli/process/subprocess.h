// Another program, run to its end.
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
  /// Its output goes where this process's goes (standard output to standard error when
  /// `output_to_error`), and nothing of it is seen here.
  bool shares_output = false;
  bool output_to_error = false;
};

struct SubprocessHooks {
  std::function<void(std::string_view)> on_output_line;  ///< a line of its standard output
  std::function<void()> on_tick;                         ///< a few times in a second
  std::function<bool()> is_to_end = nullptr;             ///< asked as often; true kills it
};

/// How it ended: by exit code or by signal.
struct SubprocessEnd {
  int exit_code = 0;         ///< 127 also when it could not be started
  int signal_number = 0;     ///< 0: it was not killed
  bool was_ended = false;    ///< by SubprocessHooks::is_to_end
  std::string error_output;  ///< what it wrote to standard error, at most the last 64 KiB
};

/// Runs the program in a process group of its own, with nothing on its standard input. The group
/// ends with it; it ends with this process. Throws UserError (interrupted) after a request to end,
/// when the group has been killed; (this machine lacks something) when it cannot be started for
/// want of processes or open files, or was stopped by a signal and nobody continued it for 10
/// seconds.
SubprocessEnd run_subprocess(const SubprocessCommand& command,
                             const SubprocessHooks& hooks,
                             const Interrupts& interrupts);

}  // namespace sim
