// onerank: the command line. Only this file catches errors and turns them into exit codes.

#include <csignal>
#include <iostream>

#include "estimator/base/errors.h"
#include "sim/cli/command_line.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), told as any other
  estimator::ExitCode exit_code;
  try {
    exit_code = sim::run_command_line(argc, argv, sim::current_environment());
  } catch (const estimator::UserError& error) {
    std::cerr << error.what();
    exit_code = error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "error: internal: " << error.what()
              << "\n  help: this is a bug in Onerank: please report it with the command\n";
    exit_code = estimator::ExitCode::kInternal;
  }
  return static_cast<int>(exit_code);
}
