// The subcommands. Each function adds one to the command line.
#pragma once

#include <functional>

#include "estimator/base/errors.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// A subcommand: its part of the command line, and what it does.
struct Command {
  CLI::App* app;
  std::function<estimator::ExitCode(const Environment&)> run;
};

/// `run`: runs one rank, and prints a table of its phases, or its profile as JSON.
Command add_run_command(CLI::App& root);

/// `estimate`: the estimate of the whole cluster, verdict first. Exit code 1 when it does not fit.
Command add_estimate_command(CLI::App& root);

/// `check`: the verdict in one line, as a gate. Exit code 1 when it does not fit.
Command add_check_command(CLI::App& root);

/// `roofline`: what bounds the step, and kernels by operator, module and phase.
Command add_roofline_command(CLI::App& root);

/// `calibrate`: measures a real GPU's kernels into a file that `estimate --calibration` reads.
Command add_calibrate_command(CLI::App& root);

/// `verify`: compares real ranks over Gloo with the stub and with the whole model. Exit code 4 when
/// they differ.
Command add_verify_command(CLI::App& root);

/// `allocators`: runs the plan with each setting of PyTorch's allocator.
Command add_allocators_command(CLI::App& root);

/// `search`: the best layouts of a model on a number of GPUs.
Command add_search_command(CLI::App& root);

/// `sweep`: all combinations of several values of flags, and how memory and time grow.
Command add_sweep_command(CLI::App& root);

/// `diff A B`: what differs between two plans, or two estimates, number by number.
Command add_diff_command(CLI::App& root);

/// `memory FILE`: what fills a peak, from a peak snapshot.
Command add_memory_command(CLI::App& root);

/// `comm`: the time of a collective by size, compared with a measured file if one is given.
Command add_comm_command(CLI::App& root);

/// `exec -- PROGRAM`: runs a user's program as one rank, or as several.
Command add_exec_command(CLI::App& root);

/// `import FILE`: the plan that another program's file means.
Command add_import_command(CLI::App& root);

/// `schema plan|profile|estimate`: the JSON Schema of a document.
Command add_schema_command(CLI::App& root);

/// `list gpus|models|links`: the names that plans can use.
Command add_list_command(CLI::App& root);

/// `completion bash|zsh|fish`: the shell's completion of this command line.
Command add_completion_command(CLI::App& root);

/// `man`: the manual page.
Command add_man_command(CLI::App& root);

}  // namespace sim
